"""job_of(): an operator's order as a job: what it leaves open, the server fills in."""

from __future__ import annotations

import secrets
from typing import NamedTuple

import msgspec

from submerge.aggregator.node import AggregatorNode
from submerge.errors import UsageError
from submerge.jobs.job import Job
from submerge.jobs.kinds import kind_of
from submerge_aggregator.jobs.views import Plain
from submerge_aggregator.questions import survey

MOST_ORDER_BYTES = 16_384
"""Of an order to open a job: settings take a fourth of it."""


class JobOrder(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an operator says of a job; each field is as in `Job`, and left out has its default."""

    kind: str
    settings: dict[str, Plain] = {}
    exact: bool = True
    least: int = 1
    rounds: int = 500
    attempts: int = 8
    open_s: float = 60.0
    round_s: float = 60.0
    job_s: float = 3600.0


class GroupSchema(NamedTuple):
    """Of which rows a group's jobs are.

    canonical : the text of the schema
    """

    canonical: bytes
    fingerprint: str
    width: int


def read_order(data: bytes) -> JobOrder:
    """Return the order in a request's body; raises UsageError if it is none."""
    try:
        return msgspec.json.decode(data, type=JobOrder)
    except msgspec.MsgspecError as error:
        raise UsageError(f"expected a job as JSON, such as kind and settings: {error}") from error


def schema_of(node: AggregatorNode, group: str) -> GroupSchema:
    """Return of which rows a group's jobs are, at a root.

    Raises Missing if there is no such group; UsageError if this is no root, or the group's schema
    is not settled yet.
    """
    survey.group_of(node, group)
    if not node.top:
        raise UsageError(
            f"jobs are opened at the root: this is {node.settings.node}, ask its parent"
            f" {node.settings.parent}, or the root above it"
        )
    ledger = node.ledger(group)
    if ledger is None:
        raise UsageError(f"group {group} has no schema yet: wait until a node has reported")
    schema = ledger.schema
    if node.plan(group).is_open(schema.canonical):
        learnt = ledger.counts().learnt
        raise UsageError(
            f"the schema of group {group} is not settled yet, after {learnt:,} rows: wait until"
            " it has a model"
        )
    return GroupSchema(schema.canonical, schema.fingerprint, schema.width)


def job_of(order: JobOrder, group: str, schema: GroupSchema) -> Job:
    """Return the job that an order asks for, with a name of its own.

    Raises UsageError if its kind is not known, or a setting makes no sense.
    """
    given = {each: getattr(order, each) for each in order.__struct_fields__}
    job = Job(
        id=f"job-{secrets.token_hex(5)}",
        group=group,
        fingerprint=schema.fingerprint,
        width=schema.width,
        **given,
    )
    kind_of(job)
    return job
