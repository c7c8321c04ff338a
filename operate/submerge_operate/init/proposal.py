"""Proposal: what a source has, what of it should be read, and why the rest should not."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from glob import escape

from submerge.headings import channel_of, heading_of
from submerge_client.config.schemas import SchemaConfig
from submerge_client.config.tomlfile import channel_table, quoted, schema_lines
from submerge_client.sensors.mqtt.decoder import HeardField
from submerge_client.sensors.mqtt.descriptions import DescribedField
from submerge_files.console.units import in_words, name_text, names_text


@dataclass(frozen=True)
class FoundChannel:
    name: str
    unit: str = ""
    every_s: float | None = None  # between its readings
    lowest: float | None = None  # of what was read, as `highest`
    highest: float | None = None
    note: str = ""


@dataclass(frozen=True)
class OmittedField:
    name: str
    why: str


@dataclass(frozen=True)
class Proposal:
    source: str
    sensor: str
    schema: SchemaConfig
    schema_note: str
    found: tuple[FoundChannel, ...]  # in the schema's order
    summary: str = ""  # settings of `[summary]` and their comments, as TOML
    left_out: tuple[OmittedField, ...] = ()
    remarks: tuple[str, ...] = ()
    discover: bool = False
    pipe: str = ""  # a command whose output `submerge up` reads


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


MOST_SHOWN = 60  # channels in a list; the file has all
MOST_LEFT_OUT = 12  # fields that are named for one reason


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
    names = dict[str, list[str]]()
    for each in left_out:
        names.setdefault(each.why, []).append(each.name)
    for why, named in names.items():
        yield f"  {why}: {names_text(named, MOST_LEFT_OUT)}"


# choose(): which fields that were heard or described should be channels, and why others not.
#
# A field is left out by its name where that says that it is no measurement; by its description; and
# by what was heard of it, if neither name nor description says that it measures something: devices
# speak seldom, and a temperature may well stay the same for a minute.

MOST_CHANNELS = 512

ENOUGH = 5  # readings after which one that has not changed is a constant, whatever it is called

TOTALS = ("kWh", "Wh", "MWh", "kvarh", "m³", "m3", "L", "l", "GB", "MB")

REASONS = {
    "clocks, not measurements": "last_seen timestamp time date ts minute_ts uptime uptimesec"
    " unixtime",
    "quality of the radio link": "linkquality lqi rssi snr signal wifi_rssi channel_rssi",
    "names and settings of the device": "id address ieee_address version mac ip port f_port"
    " installed_version latest_version fw serial period heap sleep",
    "totals, which only grow": "total energy consumption today yesterday count counter mqttcount"
    " f_cnt seq totaltariff exportactive importactive",
    "about the device, not what it measures": "battery battery_low batterypercentage availability"
    " device_temperature esp32",
    "the same in Fahrenheit": "tf",
}
NEVER = {name: why for why, names in REASONS.items() for name in names.split()}
"""Why a field is left out, by the last part of its name, in small letters."""

UNIX, MILLI = (1.2e9, 4.1e9), (1, 1000)
"""Seconds since 1970 in the years from 2008 to 2099; and milliseconds."""

MEASURED = """
temperature humidity pressure power voltage current illuminance illuminance_lux lux co2 pm1 pm25
pm10 voc tvoc moisture soil_moisture frequency flow level distance speed brightness dewpoint
apparentpower reactivepower factor apower tc rh noise weight
"""
QUANTITIES = frozenset(MEASURED.split())  # last parts of names that say that it is a measurement

MINOR, CONSTANT = "about the device, not what it measures", "constant while listening"
STATE = "states and words: --states takes those that have numbers"
TEXT = "texts"
ONCE, GROWS, MANY = "one value only", "totals, which only grow", f"beyond {MOST_CHANNELS} channels"
JOINS = "joins by itself once heard for half an hour, at once by submerge up --accept NAME"
NOT_HEARD, SAID_BEFORE = f"described, not heard yet: {JOINS}", f"retained, not heard yet: {JOINS}"

PAIRS = (
    *(("ON", "OFF"), ("On", "Off"), ("on", "off"), ("true", "false"), ("True", "False")),
    *(("OPEN", "CLOSED"), ("open", "closed"), ("online", "offline"), ("Online", "Offline")),
    *(("detected", "clear"), ("occupied", "unoccupied"), ("wet", "dry"), ("home", "not_home")),
    *(("UNLOCK", "LOCK"), ("unlocked", "locked"), ("OPEN", "CLOSE")),
)
"""Words that are one of two: the first counts 1, the second 0."""

STATES = {word: number for pair in PAIRS for word, number in zip(pair, (1.0, 0.0), strict=True)}


@dataclass(frozen=True)
class Choice:
    found: tuple[FoundChannel, ...]
    left_out: tuple[OmittedField, ...]
    states: dict[str, float]


def choose(
    fields: Mapping[str, HeardField],
    described: Mapping[str, DescribedField],
    retained: Mapping[str, None],
    words: Mapping[str, set[str]],
    *,
    with_states: bool,
) -> Choice:
    found, left_out, states = list[FoundChannel](), list[OmittedField](), dict[str, float]()
    known = {*fields, *described, *retained, *words}
    for name in sorted(known, key=lambda each: each.partition("/")):
        field, description = fields.get(name), described.get(name)
        spoken = words.get(name, set()) if field is None else set()
        kind = description.kind if description else ""
        is_state = field is None and (bool(spoken) or kind == "state")
        why = why_not(name, field, description)
        if not why and is_state:
            numbers = {word: STATES[word] for word in spoken if word in STATES}
            if with_states and spoken and len(numbers) == len(spoken):
                states |= numbers
            else:
                why = STATE if kind == "state" or not spoken or numbers else TEXT
        if not why and field is None and not is_state:
            if kind != "number" and name not in retained:
                continue  # a description without a type, of which nothing came
            why = SAID_BEFORE if description is None else NOT_HEARD
        if not why and len(found) == MOST_CHANNELS:
            why = MANY
        if why:
            left_out.append(OmittedField(name, why))
        else:
            found.append(_channel(name, field, description))
    # The other word of a pair may come later.
    pairs = [pair for pair in PAIRS if not states.keys().isdisjoint(pair)]
    states |= {word: STATES[word] for pair in pairs for word in pair}
    return Choice(tuple(found), tuple(left_out), states)


def exclusions(choice: Choice) -> tuple[str, ...]:
    """Return patterns for what is never a channel, so that the sensor does not name it again."""
    # Each is a whole name, or a whole last part that is never a measurement on any device.
    never, chosen = set[str](), {_last(each.name) for each in choice.found}
    for name in (each.name for each in choice.left_out if each.why in REASONS):
        last = _last(name)
        usual = last.lower() in NEVER and last not in chosen and last != name
        never |= {f"*/{last}", f"*.{last}"} if usual else {escape(name)}
    return tuple(sorted(never))


def why_not(name: str, field: HeardField | None, description: DescribedField | None) -> str:
    """Return why a field is left out, or ""."""
    last = _last(name).lower()
    unit = (field.unit if field else "") or (description.unit if description else "")
    if last in NEVER:
        return NEVER[last]
    if last == "voltage" and unit == "mV":
        return MINOR  # of its battery
    if description is not None and description.is_minor:
        return MINOR
    if unit in TOTALS:
        return GROWS
    if field is None:
        return ""
    if not unit and any(UNIX[0] * n <= field.lowest <= field.highest <= UNIX[1] * n for n in MILLI):
        return NEVER["time"]
    if field.count >= ENOUGH and not field.changes:
        return CONSTANT
    if unit or last in QUANTITIES or (description is not None and description.kind == "number"):
        return ""
    if field.count == 1:
        return ONCE
    if not field.changes:
        return CONSTANT
    only_grows = field.count > ENOUGH and field.changes == field.count - 1 and not field.falls
    return GROWS if only_grows else ""


def _channel(
    name: str, field: HeardField | None, description: DescribedField | None
) -> FoundChannel:
    unit = description.unit if description else ""
    if field is None:
        return FoundChannel(name, unit, note="a state")
    return FoundChannel(name, field.unit or unit, field.every_s, field.lowest, field.highest)


def _last(name: str) -> str:
    return re.split(r"[/.]", name)[-1]
