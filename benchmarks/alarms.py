"""How often alarms are false, what they find, how soon, and whether they name the right channel.

40 nodes of a generated plant (docs/plants.md) for 30 virtual days: real `ClientNode`s below a
real root, an hour's worth of rows at a time, a model an hour. `--mode` says what is asked:

- rates: promised and realised false alarms; each kind of fault found, how late, and by which
  channel. An alarm is false if it began while nothing was wrong with its node.
- steady: one channel 10 scales off for 7 days at 1, 2 and 4 nodes, with and without the gate.
- thousand: one channel times 1000 at every node, scaling left to the fleet: the same alarms?
- young: a node with ten readings of its own, against a model of those ten alone.
"""

import json
from collections import Counter
from dataclasses import asdict, dataclass

import click
import numpy as np

import blas  # noqa: F401 (before numpy: it sets one thread)
from alarms_asked import steady, thousand, young
from fleet_in_time import EPOCH, Fleet, Member, without_gate
from plants.plant import PLANTS, Injected, Plant, plant
from report import Table
from submerge.protocol.alarm_status import Alarm
from submerge.protocol.settings import AlarmSettings

WEEK_S = 7 * 86400.0


@dataclass(frozen=True)
class Found:
    """What became of a fault.

    delay_h : from its start to its alarm; None if there was none
    cause : which score was over its limit
    first, last : whether the right channel was in the top three at once, and in the end
    """

    fault: Injected
    delay_h: float | None
    cause: str = ""
    first: bool = False
    last: bool = False
    top: tuple[str, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """What a run came to.

    quiet_weeks : node-weeks that were watched while nothing was wrong
    false : alarms that began in them
    """

    plant: str
    promised: float
    quiet_weeks: float
    false: tuple[tuple[str, float, Alarm], ...]
    found: tuple[Found, ...]
    armed_h: float

    @property
    def realised(self) -> float:
        """False alarms a node and week."""
        return len(self.false) / self.quiet_weeks if self.quiet_weeks else 0.0


def judged(fleet: Fleet) -> Outcome:
    """Hold the alarms of a run against the truth."""
    plant, false, found, quiet = fleet.plant, [], [], 0.0
    for number, member in enumerate(fleet.members):
        faults = [fault for fault in plant.faults if fault.node == number]
        spans = [(fault.start, fault.end + plant.lingers) for fault in faults]
        alarms = sorted(member.alarms.values(), key=lambda alarm: alarm.began)
        open_at = [(fleet.row_at(a.began), fleet.row_at(a.ended or fleet.now.wall)) for a in alarms]
        for alarm, (row, _) in zip(alarms, open_at, strict=True):
            if not any(start <= row < end for start, end in spans):
                false.append((member.name, row * plant.period_s / 86400, alarm))
        for hour in member.armed:
            start, stop = fleet.bounds(hour - 1)
            wrong = any(stop > first and start < last for first, last in spans)
            # What is open already cannot begin.
            quiet += not wrong and not any(a < start and stop < b for a, b in open_at)
        found += [_found(fleet, member, fault) for fault in faults]
    first = min((min(member.armed) for member in fleet.members if member.armed), default=0)
    weeks = quiet * 3600 / WEEK_S
    promised = fleet.alarms.at_most_per_s * WEEK_S
    return Outcome(plant.name, promised, weeks, tuple(false), tuple(found), float(first))


def _found(fleet: Fleet, member: Member, fault: Injected) -> Found:
    for alarm in sorted(member.alarms.values(), key=lambda alarm: alarm.began):
        row = fleet.row_at(alarm.began)
        if fault.start <= row < fault.end:
            last = tuple(name for name, _ in alarm.top)
            first = member.first_top.get(alarm.number, ())
            delay = (row - fault.start) * fleet.plant.period_s / 3600
            right = set(fault.channels)
            return Found(
                fault, delay, alarm.cause, bool(right & {*first}), bool(right & {*last}), last
            )
    return Found(fault, None)


def tables(outcome: Outcome) -> list[Table]:
    """Return what there is to print of a run."""
    rates = Table(
        f"{outcome.plant}: false alarms a node and week",
        {"promised": ".2f", "realised": ".2f", "ratio": ".2f", "false": "d", "weeks": ".1f",
         "armed after h": ".0f", "by": ""},
        [
            (
                outcome.promised,
                outcome.realised,
                outcome.realised / outcome.promised,
                len(outcome.false),
                outcome.quiet_weeks,
                outcome.armed_h,
                ", ".join(
                    f"{cause} {n}"
                    for cause, n in Counter(alarm.cause for *_, alarm in outcome.false).items()
                ),
            )
        ],
    )  # fmt: skip
    rows: list[tuple[object, ...]] = []
    kinds = dict.fromkeys(found.fault.kind for found in outcome.found)
    for kind in (*sorted(kinds), "all"):
        of = [found for found in outcome.found if kind in ("all", found.fault.kind)]
        seen = [found for found in of if found.delay_h is not None]
        delays = [found.delay_h for found in seen]
        rows.append(
            (
                kind,
                len(of),
                len(seen),
                float(np.median(delays)) if seen else None,
                max(delays) if seen else None,
                np.mean([found.first for found in seen]) if seen else None,
                np.mean([found.last for found in seen]) if seen else None,
                ", ".join(f"{c} {n}" for c, n in Counter(found.cause for found in seen).items()),
            )
        )
    faults = Table(
        f"{outcome.plant}: faults",
        {"kind": "", "injected": "d", "found": "d", "delay h": ".1f", "worst h": ".1f",
         "named at once": ".0%", "named": ".0%", "by": ""},
        rows,
    )  # fmt: skip
    return [rates, faults]


def rates(
    plants: list[Plant], settings: AlarmSettings, seed: int, *, robust: bool
) -> tuple[list[Table], object]:
    """Run plants; return what there is to print, and all of it for machines."""
    printed, reported = [], []
    for each in plants:
        fleet = Fleet(each, settings, seed=seed, robust=robust)
        for _ in fleet.run(label=each.name):
            pass
        fleet.ends()
        outcome = judged(fleet)
        printed += tables(outcome)
        reported.append(asdict(outcome))
    return printed, reported


@click.command(help=__doc__)
@click.option("--mode", type=click.Choice(["rates", "steady", "thousand", "young"]))
@click.option("--plant", "names", type=click.Choice([*PLANTS]), multiple=True)
@click.option("--days", default=30, show_default=True)
@click.option("--nodes", default=40, show_default=True)
@click.option("--seed", default=0, show_default=True)
@click.option("--at-most", default=1.0, show_default=True, help="False alarms a node and week.")
@click.option("--after", default=5, show_default=True, help="So many rows over the limit ...")
@click.option("--of", default=8, show_default=True, help="... of the last so many.")
@click.option("--settle-days", default=3.0, show_default=True)
@click.option("--withheld-days", default=1.0, show_default=True)
@click.option("--robust", is_flag=True, help="Leave nodes out of the model that are far off.")
@click.option("--without-gate", "ungated", is_flag=True, help="Learn what is alarmed at.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, every alarm and fault in it.")
def main(
    mode: str | None,
    names: tuple[str, ...],
    days: int,
    nodes: int,
    seed: int,
    at_most: float,
    after: int,
    of: int,
    settle_days: float,
    withheld_days: float,
    robust: bool,
    ungated: bool,
    as_json: bool,
) -> None:
    """Run it, and print the tables."""
    settings = AlarmSettings(
        at_most_per_s=at_most / WEEK_S,
        after=after,
        of=of,
        settle_s=86400 * settle_days,
        max_withheld_s=86400 * withheld_days,
    )

    def fleets(**options: object) -> list[Plant]:
        return [
            plant(name, seed=seed, nodes=nodes, days=days, quiet_days=days / 3, **options)
            for name in names or PLANTS
        ]

    match mode:
        case "steady":
            printed, reported = steady(names or ("loop",), nodes, days, seed, settings)
        case "thousand":
            printed, reported = thousand(fleets(), settings, seed)
        case "young":
            printed, reported = young(fleets(faults=()), settings, seed)
        case _ if ungated:
            with without_gate():
                printed, reported = rates(fleets(), settings, seed, robust=robust)
        case _:
            printed, reported = rates(fleets(), settings, seed, robust=robust)
    if as_json:
        click.echo(json.dumps({"epoch": EPOCH, "runs": reported}, default=str))
    else:
        click.echo("\n\n".join(table.markdown for table in printed))


if __name__ == "__main__":
    main()
