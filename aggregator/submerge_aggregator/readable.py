"""Whether receivers could read what this aggregator is about to send: it is decoded here first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from submerge import SubmergeError
from submerge.aggregator.plan import GroupPlan
from submerge.protocol.messages import Model, Report
from submerge_proto.wire import codec


def objection(message: Model | Report, *, coarse: bool) -> str | None:
    """Return why receivers could not read a message; None if they can.

    coarse : whether columns go as int8 where the error is small

    Cost: one encoding and one decoding, next to the merge of all rows.
    """
    try:
        codec.decode(codec.kind_of(message), codec.encode(message, coarse=coarse))
    except (SubmergeError, ValueError, TypeError, ArithmeticError) as error:
        # Protobuf raises ValueError and TypeError for numbers that do not fit a field.
        return f"{type(error).__name__}: {error}"
    return None


def checked(plans: Mapping[str, GroupPlan], *, coarse: bool) -> dict[str, GroupPlan]:
    """Return plans of groups that read what they send."""
    reads = partial(objection, coarse=coarse)
    return {name: replace(plan, objection=reads) for name, plan in plans.items()}
