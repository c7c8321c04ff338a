"""Proposal: what a source has, what of it should be read, and why the rest should not."""

from __future__ import annotations

from dataclasses import dataclass

from submerge_client.config.schemas import SchemaConfig


@dataclass(frozen=True)
class FoundChannel:
    """A channel that is proposed.

    Attributes
    ----------
    name, unit : str
    every_s : float, optional
        Seconds between its readings; None if that is not known.
    lowest, highest : float, optional
        What was read of it; None before a reading.
    note : str
        What else a person should know of it.
    """

    name: str
    unit: str = ""
    every_s: float | None = None
    lowest: float | None = None
    highest: float | None = None
    note: str = ""


@dataclass(frozen=True)
class OmittedField:
    """A field that is not proposed, and why."""

    name: str
    why: str


@dataclass(frozen=True)
class Proposal:
    """What a configuration would have.

    Attributes
    ----------
    source : str
        Where readings come from, in words.
    sensor : str
        The section `[sensor]` and its comments, as TOML.
    schema : SchemaConfig
    schema_note : str
        Comments on scaling, as TOML.
    summary : str
        Settings of `[summary]` and their comments, as TOML; "" for none.
    found : tuple of FoundChannel
        In the schema's order.
    left_out : tuple of OmittedField
    remarks : tuple of str
        What a person should know of the whole.
    discover : bool
        Whether new devices are learnt by themselves.
    pipe : str
        A command whose output `submerge up` reads; "" where it reads by itself.
    """

    source: str
    sensor: str
    schema: SchemaConfig
    schema_note: str
    found: tuple[FoundChannel, ...]
    summary: str = ""
    left_out: tuple[OmittedField, ...] = ()
    remarks: tuple[str, ...] = ()
    discover: bool = False
    pipe: str = ""
