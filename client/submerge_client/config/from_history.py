"""client_text(): a short configuration of a client, with all that a history settles filled in."""

from __future__ import annotations

from dataclasses import dataclass

from submerge_client.config.schemas import SchemaConfig
from submerge_client.config.sensor_kind import SILENCE_S
from submerge_client.config.summary import SummaryConfig
from submerge_client.config.tomlfile import quoted, schema_lines

GROUP, PARENT, NODE = "machines", "root", "machine-1"
"""Names of a fleet that has none yet, the same at the client and at the root."""

MOST_NAMED = 5  # most machines that a comment lists

CLIENT = """\
# A client of submerge: channels, scaling, rank and period are those of {source}.
# `submerge client --config FILE` starts from this file; `submerge client init` prints a sample
# with every setting.

# This device's name. It never changes, and is unique.{machines}
node = {node}
# Nodes that share a schema and a model, and the aggregator that this one reports to.
group = {group}
parent = "{parent}"
# A file for restarts: the newest model and unreported readings.
state = {state}

# The connection to the parent. Without TLS, others on the network can read and forge messages:
# between machines, say kit = "FILE" above, write grpcs:// in place of grpc://, and delete insecure.
[uplink]
url = "grpc://127.0.0.1:8470"
insecure = true

# Where readings come from: a line of JSON on standard input for each row, with null for a gap.
#     {{{example}: 21.5, ...}}
# Other kinds are in the sample: "mqtt" reads a topic for each channel, and "file" files.
[sensor]
kind = "ndjson"

# Which rows are learnt and scored: what --when was for the history, which a model does not say.
#[learn]
#when = '{example} > 0'

# Where the score of each row goes: "stdout", "mqtt" or "none".
[scores]
to = "stdout"
{period}
{sections}"""

PERIOD = """
# Seconds between rows, as in the history: limits of alarms are kept for rows of this period.
[alarms]
period_s = {period!r}
"""

SILENCE = """
# Seconds without a row after which the program counts as stuck.
[watch]
silence_s = {silence!r}
"""

SUMMARY = """\
# Directions of normal variation that SPE and T2 are of: the same at all nodes of the group and at
# its aggregators. With "auto" the root chooses it from the fleet's rows.
[{section}]
{settings}
"""

CENTERS = {
    "fleet": """All nodes are measured from one mean; a history of several machines
# (submerge fit --node-by) gives center = "own".""",
    "own": "Each node is measured from its own mean.",
    "none": "Nothing else is subtracted.",
}
"""What each `center` means, as the rest of a comment."""

SPARE = "# Spare directions: with them a model has as many as that of the history."

SCHEMA = """
# The meaning of a vector, the same at all nodes of the group and at the root. A model of these
# readings has the same fingerprint only if nothing here changes, not even a digit. A reading counts
# as (reading - offset) / scale. {center}
[{section}]
{settings}"""


@dataclass(frozen=True)
class LearntSettings:
    """What a history settles of a configuration."""

    source: str  # where it was read from, for people
    schema: SchemaConfig  # without features
    summary: SummaryConfig
    period_s: float = 0.0  # between rows; 0 if not known
    machines: tuple[str, ...] = ()  # whose rows they were, if they have names
    group: str = GROUP

    def sections(self, *, under: str = "") -> str:
        """Return the sections `[summary]` and `[schema]`, below a table such as `groups.pumps.`."""
        rank, spare = self.summary.rank, self.summary.oversample
        settings = ['rank = "auto"' if rank == "auto" else f"rank = {rank}"]
        if spare != SummaryConfig().oversample:
            settings += [SPARE, f"oversample = {spare}"]
        summary = SUMMARY.format(section=f"{under}summary", settings="\n".join(settings))
        return summary + SCHEMA.format(
            section=f"{under}schema",
            center=CENTERS[self.schema.center],
            settings=schema_lines(self.schema),
        )


def client_text(learnt: LearntSettings) -> str:
    node = next(iter(learnt.machines), NODE)
    return CLIENT.format(
        source=quoted(learnt.source),
        machines=_machines(learnt.machines),
        node=quoted(node),
        group=quoted(learnt.group),
        parent=PARENT,
        state=quoted(f"{node}.state"),
        example=quoted(learnt.schema.tables[0].name),
        period=_period(learnt.period_s),
        sections=learnt.sections(),
    )


def _machines(names: tuple[str, ...]) -> str:
    """Return a line of comment about the machines of a history, if there were several."""
    if len(names) < 2:
        return ""
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f"\n# The history has {', '.join(names[:MOST_NAMED])}{more}."


def _period(period_s: float) -> str:
    """Return what follows from the time between rows."""
    if not period_s:
        return ""
    silence = 10 * period_s
    late = SILENCE.format(silence=silence) if silence > SILENCE_S else ""
    return PERIOD.format(period=period_s) + late
