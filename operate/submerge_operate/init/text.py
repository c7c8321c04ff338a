"""box_text(): a proposal as a configuration of one machine, short, with a comment on each part."""

from __future__ import annotations

from submerge.headings import channel_of, heading_of
from submerge_client.config.schemas import SchemaConfig
from submerge_client.config.toml_text import channel_table, quoted, schema_lines
from submerge_operate.init.proposal import Proposal

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
    """Return a configuration as TOML.

    node : the machine's name
    folder : where it keeps what it knows
    path : what the file will be called, for its comments
    page : whether what draws a page is installed here
    """
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
