"""violations_at_rest(): what a store and a memory may hold when a fleet is at rest.

I3  A node that restarts from its store reports the same.
I5  Rows, closed incarnations, fences and waiting finals stay within their limits.

`MeasuredIds`: where the ids are that clients have measured while the scaling was open. No parent
has them before it is settled: they are in a client's memory and on its card, and then in the final
report of a successor.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterator
from functools import lru_cache
from hashlib import sha256

from submerge.aggregator.node import AggregatorNode
from submerge.aggregator.rows.ledger import AGGREGATOR_ROWS, CLIENT_ROWS, CLOSED, FENCES, Ledger
from submerge.aggregator.rows.pool import Row, Sealed
from submerge.client.incarnation import Checkpoint
from submerge.client.measurement import MeasuredRows
from submerge.client.node import ClientNode
from submerge.client.pending_finals import PAST, Past
from submerge.protocol.history import History
from submerge.protocol.machine import Event, Now, Reading, Records
from submerge.protocol.messages import Incarnation, Report, learnt_in
from submerge.schema import Schema
from submerge_lab.simulator.hosts import Host
from submerge_lab.simulator.nodes import GROUP
from submerge_lab.simulator.samples import SampleSets, bits_of


class MeasuredIds:
    """The ids that each incarnation has measured."""

    def __init__(self) -> None:
        self._bits: dict[Incarnation, int] = defaultdict(int)

    def note(self, node: ClientNode, event: Event) -> None:
        """Take a reading that a client has measured."""
        if isinstance(event, Reading) and not node.current.learns:
            for row in event.rows:
                self._bits[node.current.incarnation] |= 1 << round(float(row[0]))

    def of(self, report: Report) -> int:
        """Return the ids in a report, and those that were measured by then."""
        bits, measured = bits_of(report.summary), self._bits[report.stamp.incarnation]
        # Ids rise with time: a report has the first that its incarnation has measured.
        for _ in range(report.counts.learnt if measured else 0):
            bits |= measured & -measured
            measured &= measured - 1
        return bits


def ids_of(measured: MeasuredRows | None) -> int:
    """Return the ids among readings that were measured, as bits."""
    bits = 0
    for row in () if measured is None else measured.rows:
        bits |= 1 << round(float(row[0]))
    return bits


def kept_by(checkpoint: Checkpoint) -> int:
    """Return the ids in a checkpoint."""
    return bits_of(checkpoint.report.summary) | ids_of(checkpoint.measured)


def held_by(node: ClientNode, now: Now) -> int:
    """Return the ids in a client's memory: of its incarnation, and of finals that measured."""
    bits = bits_of(node.current.summary(now)) | ids_of(node.current.measured(now))
    bits |= waiting_in(node)
    for final in node.finals.past.finals:
        bits |= ids_of(final.measured)
    return bits


def waiting_in(node: ClientNode) -> int:
    """Return the ids that wait until they are enough to be learnt together."""
    rows, bag = node.current.few.rows, SampleSets().learner(node.current.schema)
    if len(rows):
        bag.learn(rows, rows)
    return bits_of(bag.summary())


def fingerprint_in(records: Records) -> str:
    """Return the fingerprint of the schema in an aggregator's store; empty if there is none."""
    canonical: bytes = records.get(("schema", GROUP), b"")
    return sha256(canonical).hexdigest() if canonical else ""


def family_in(records: Records) -> str:
    """Return the family of the schema in an aggregator's store; empty if there is none."""
    return _family(records.get(("schema", GROUP), b""))


@lru_cache
def _family(canonical: bytes) -> str:
    return Schema.parse(canonical).family if canonical else ""


def violations_at_rest(
    host: Host, schemas: int, *, learns_scaling: bool
) -> Iterator[tuple[str, str]]:
    """Yield the violations of one host: the invariant, and what is wrong."""
    # A node has one sealed row of each schema at most. `learns_scaling`: a group without scaling
    # counts nothing yet.
    node = host.node
    if isinstance(node, ClientNode):
        if len(host.records.get(PAST, Past()).finals) > node.settings.finals:
            yield "I5", f"{host} keeps too many finals"
        return
    ledger = None if node is None else node.ledger(GROUP)
    if node is None or ledger is None:
        return
    yield from row_limits(host, ledger, schemas)
    is_open = learns_scaling and ledger.schema.scaling is None
    if is_open:
        return
    out = left_out(node)
    rows = bits_in(host.records) & ~bits_in(host.records, only=out)
    if bits_of(ledger.summary()) != rows | bits_in_files(host.records):
        yield "I3", f"{host} would report something else after a restart"


def row_limits(host: Host, ledger: Ledger, schemas: int) -> Iterator[tuple[str, str]]:
    """Yield where an aggregator's ledger is beyond its limits; as `violations_at_rest`."""
    rows: dict[str, int] = defaultdict(int)
    for (name, _), row in ledger.rows.items():
        rows[name] += 1
        most = CLIENT_ROWS if row.from_client else AGGREGATOR_ROWS
        if rows[name] > most:
            yield "I5", f"{host} holds more than {most} rows of {name}"
        member = ledger.member(name)
        if len(member.closed) > CLOSED or len(member.fences) > FENCES + AGGREGATOR_ROWS:
            yield "I5", f"{host} remembers too much of {name}"
    sealed: dict[str, int] = defaultdict(int)
    for name, _ in ledger.sealed:
        sealed[name] += 1
    for name, count in sealed.items():
        if count > schemas:
            yield "I5", f"{host} holds {count} sealed rows of {name}"


def left_out(node: AggregatorNode) -> frozenset[str]:
    """Return the nodes whose rows an aggregator keeps out: quarantined, or far."""
    # Out of its model, and out of the sums under an earlier schema while a scale is measured.
    ledger = node.ledger(GROUP)
    outliers = frozenset(() if ledger is None else ledger.outliers())
    waiting = None if ledger is None else ledger.waiting()
    if waiting is not None:
        outliers |= waiting.outliers().keys()
    return outliers | node.excluded(GROUP)[1].keys()


def bits_in(records: Records, only: Container[str] | None = None) -> int:
    """Return the ids in an aggregator's rows that count, of all nodes or of some."""
    # Where channels have names, rows of all schemas do.
    every = family_in(records) != fingerprint_in(records)
    return bits_under("" if every else fingerprint_in(records), records, only)


def bits_in_files(records: Records) -> int:
    """Return the ids in a root's store that count beside rows: those of histories."""
    fingerprint, bits = fingerprint_in(records), 0
    for record in records.values():
        if isinstance(record, History) and record.model.fingerprint == fingerprint:
            bits |= bits_of(record.summary)
    return bits


def bits_under(fingerprint: str, records: Records, only: Container[str] | None = None) -> int:
    """Return the ids in an aggregator's store in rows of that fingerprint; "": of any."""
    bits = 0
    for key, record in records.items():
        if only is not None and (len(key) < 3 or key[2] not in only):
            continue
        if isinstance(record, Row):
            for of, summary in learnt_in(record.report):
                bits |= bits_of(summary) if fingerprint in ("", of) else 0
        elif isinstance(record, Sealed) and fingerprint in ("", key[3]):
            bits |= bits_of(record.summary)
    return bits
