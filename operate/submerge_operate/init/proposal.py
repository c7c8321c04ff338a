"""Proposal: what a source has, what of it should be read, and why the rest should not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from submerge.headings import channel_of, heading_of
from submerge_client.config.schemas import SchemaConfig
from submerge_client.config.tomlfile import channel_table, quoted, schema_lines
from submerge_files.console.units import in_words, name_text


@dataclass(frozen=True)
class FoundChannel:
    """A channel that is proposed.

    every_s : Seconds between its readings; None if that is not known.
    lowest, highest : What was read of it; None before a reading.
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

    summary : Settings of `[summary]` and their comments, as TOML; "" for none.
    found : In the schema's order.
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


BOX = """\
# One machine that watches its own sensors: {source}.
# Written by `submerge init`; `submerge up --config {path}` starts from it. The settings that are
# not here have their defaults: `submerge client init` prints those of a client's sections.

# This machine's name. It never changes.
node = {node}
# Where it keeps what it has learnt. Without this folder it begins again.
folder = {folder}
{discover}
{sensor}
# What is learnt: a channel in each line. Take out those that say nothing.
{schema_note}
[schema]
{schema}{summary}
# When a score is an alarm. A higher rate finds faults sooner.
[alarms]
at_most = "1 false per week"
# Where alarms go, as lines of JSON; `submerge client init` shows webhooks, ntfy and MQTT.
#ndjson = "alarms.ndjson"

# A page for browsers on this machine: `submerge up` prints where. Orders need a token.
{page}
"""

WITHOUT = "# For it: pip install 'submerge[page]', and then without the #:\n#[page]"

DISCOVER = """
# Fields of new devices are learnt by themselves, once they have been heard for half an hour.
discover = true
"""


def box_text(proposal: Proposal, *, node: str, folder: str, path: str, page: bool = True) -> str:
    """Return a configuration as TOML."""
    summary = f"\n[summary]\n{proposal.summary}" if proposal.summary else ""
    return BOX.format(
        source=" ".join(proposal.source.split()),
        path=" ".join(path.split()),
        node=quoted(node),
        folder=quoted(folder),
        discover=DISCOVER if proposal.discover else "",
        sensor=proposal.sensor,
        schema_note=proposal.schema_note,
        schema=_schema(proposal.schema),
        summary=summary,
        page="[page]" if page else WITHOUT,
    )


def _schema(schema: SchemaConfig) -> str:
    """Return the settings of `[schema]`; channels as "name [unit]" where that says all."""
    if schema.scaling == "fixed":
        return schema_lines(schema)
    lines = [f"scaling = {quoted(schema.scaling)}", "channels = ["]
    for channel, table in zip(schema.sensed, schema.tables, strict=True):
        text = heading_of(channel)
        plain = channel_of(text) == channel
        lines.append(f"    {quoted(text) if plain else channel_table(table)},")
    return "\n".join([*lines, "]\n"])


MOST_SHOWN = 60
"""Channels in a list; the file has all."""

MOST_LEFT_OUT = 12
"""Fields that are named for one reason."""


def lines_of(proposal: Proposal) -> Iterator[str]:
    """Yield what would be read, and what would be left out and why."""
    found = proposal.found
    yield f"{len(found)} {'channel' if len(found) == 1 else 'channels'}: {proposal.source}"
    rows = [("channel", "unit", "every", "range", ""), *map(_cells, found[:MOST_SHOWN])]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True) if width]
        yield ("  " + "  ".join(cells)).rstrip()
    if len(found) > MOST_SHOWN:
        yield f"  and {len(found) - MOST_SHOWN} more"
    if proposal.left_out:
        yield "left out:"
        yield from _reasons(proposal.left_out)
    yield from proposal.remarks


def _cells(channel: FoundChannel) -> tuple[str, str, str, str, str]:
    every = "" if channel.every_s is None else in_words(channel.every_s)
    lowest, highest = channel.lowest, channel.highest
    if lowest is None or highest is None:
        span = ""
    else:
        span = f"{lowest:g}" if lowest == highest else f"{lowest:g} to {highest:g}"
    return name_text(channel.name), name_text(channel.unit), every, span, channel.note


def _reasons(left_out: Iterable[OmittedField]) -> Iterator[str]:
    """Yield a line for each reason, with the names that it has."""
    names = dict[str, list[str]]()
    for each in left_out:
        names.setdefault(each.why, []).append(name_text(each.name))
    for why, named in names.items():
        more = f" and {len(named) - MOST_LEFT_OUT} more" if len(named) > MOST_LEFT_OUT else ""
        yield f"  {why}: {', '.join(named[:MOST_LEFT_OUT])}{more}"
