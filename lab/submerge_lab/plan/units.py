"""UnitCosts: what one report, one row and one message cost, and where each figure is from."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Literal, NamedTuple

from submerge_lab.plan.measure import Measured, Sizes

Transport = Literal["grpc", "mqtt"]


class UnitCost(NamedTuple):
    """One unit cost."""

    value: float
    unit: str
    source: str


@dataclass(frozen=True, slots=True)
class UnitCosts:
    """All unit costs of a plan.

    report_bytes, answer_bytes, model_bytes : Of one message, without the headers of TCP, TLS,
        HTTP/2 or MQTT.
    report_core_s : Processor time of an aggregator for a report: to receive, decide, store and
        answer it.
    merge_core_s : Processor time of an aggregator for each child, when it merges what its children
        reported.
    row_bytes, base_bytes : Memory of an aggregator for each child, and without any.
    broker_core_s : Processor time of a broker for one message that it passes on, acknowledged on
        both sides.
    """

    report_bytes: UnitCost
    answer_bytes: UnitCost
    model_bytes: UnitCost
    report_core_s: UnitCost
    merge_core_s: UnitCost
    row_bytes: UnitCost
    base_bytes: UnitCost
    broker_core_s: UnitCost

    def named(self) -> dict[str, UnitCost]:
        """Return all of them by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


REPORT_CORE_S: dict[Transport, float] = {"grpc": 627e-6, "mqtt": 631e-6}
BASE_MIB: dict[Transport, float] = {"grpc": 65.0, "mqtt": 54.0}
CHILD_MIB: dict[Transport, float] = {"grpc": (146 - 65) / 1000, "mqtt": (74 - 54) / 1000}
BROKER_CORE_S = 17e-6

INSIDE_CORE_S, MERGE_CORE_S, INSIDE_BYTES = 473e-6, 203e-6, 11_270.0
"""What `measured` found at d = 64 and k = 13, where the figures above were measured, too."""

DURABLE = "benchmarks/durable_against.py, d = 64, k = 13"
FOOTPRINT = "benchmarks/footprint.py, d = 64, k = 13"
INSIDE = "submerge lab plan --measure, d = 64, k = 13"
BROKER = "benchmarks/broker_cost.py, Mosquitto 2.0"
COUNTED = "encoded by this command"

MIB = 2.0**20


def recorded(messages: Sizes, transport: Transport) -> UnitCosts:
    """Return the unit costs that benchmarks have measured, and the bytes of these messages."""
    return UnitCosts(
        UnitCost(messages.report, "bytes", COUNTED),
        UnitCost(messages.answer, "bytes", COUNTED),
        UnitCost(messages.model, "bytes", COUNTED),
        UnitCost(REPORT_CORE_S[transport], "core s", DURABLE),
        UnitCost(MERGE_CORE_S, "core s", INSIDE),
        UnitCost(CHILD_MIB[transport] * MIB, "bytes", FOOTPRINT),
        UnitCost(BASE_MIB[transport] * MIB, "bytes", FOOTPRINT),
        UnitCost(BROKER_CORE_S, "core s", BROKER),
    )


def remeasured(units: UnitCosts, here: Measured) -> UnitCosts:
    """Return unit costs with those that were measured on this machine."""
    # What a transport takes beside a report is not measured here. Its memory for each child stays;
    # its processor time grows with that of the report, and a broker's with both.
    times = here.report_core_s / INSIDE_CORE_S
    scaled = f"this machine, {times:.2f} times"
    report, broker, row = units.report_core_s, units.broker_core_s, units.row_bytes
    return replace(
        units,
        report_core_s=UnitCost(times * report.value, report.unit, f"{scaled} {report.source}"),
        merge_core_s=UnitCost(here.merge_core_s, "core s", "this machine"),
        row_bytes=UnitCost(
            max(here.row_bytes, row.value + here.row_bytes - INSIDE_BYTES),
            "bytes",
            f"this machine, and connections by {row.source}",
        ),
        broker_core_s=UnitCost(times * broker.value, broker.unit, f"{scaled} {broker.source}"),
    )
