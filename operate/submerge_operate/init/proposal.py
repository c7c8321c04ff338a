"""Proposal: what a source has, what of it should be read, and why the rest should not."""

from __future__ import annotations

from dataclasses import dataclass

from submerge_client.config.schemas import SchemaConfig


@dataclass(frozen=True)
class FoundChannel:
    """A channel that is proposed.

    every_s : Seconds between its readings; None if that is not known.
    lowest, highest : What was read of it; None before a reading.
    note : What else a person should know of it.
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

    source : Where readings come from, in words.
    sensor : The section `[sensor]` and its comments, as TOML.
    schema_note : Comments on scaling, as TOML.
    summary : Settings of `[summary]` and their comments, as TOML; "" for none.
    found : In the schema's order.
    remarks : What a person should know of the whole.
    discover : Whether new devices are learnt by themselves.
    pipe : A command whose output `submerge up` reads; "" where it reads by itself.
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
