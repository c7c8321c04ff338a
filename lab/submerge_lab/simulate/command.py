"""`submerge lab simulate`: a fleet of any size in one process, with all kinds of failures. A preset
draws rates of faults for each seed. A rate given as an option replaces the drawn one and changes
nothing else of the seed. Without a preset only the given rates count.
"""

from __future__ import annotations

import difflib
import json
import sys
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import click

from submerge import UsageError
from submerge.features import FeatureMap
from submerge_files.console.options import QUIET, default_option, flag_option, json_option
from submerge_files.console.units import duration, plain, rate, share, span_text
from submerge_lab.kernel_options import check, feature_map, kernel_options, taken, written
from submerge_lab.simulate.run import Findings, collect, transcript
from submerge_lab.simulator import PRESETS, SHARES, Faults, Plan
from submerge_lab.simulator.faults import RANKS

FLAGS = {
    "loss": "--loss",
    "duplicate": "--duplicate",
    "reorder": "--reorder",
    "delay_s": "--delay",
    "partition": "--partition",
    "outage_s": "--outage",
    "kill": "--kill",
    "down_s": "--down",
    "broker": "--broker",
    "failed_write": "--failed-write",
}
"""Faults with an option of their own."""

NAMES = tuple(field.name for field in fields(Faults))
OTHERS = tuple(name for name in NAMES if name not in FLAGS)
RARE = tuple(name for name in OTHERS if name not in SHARES and not name.endswith("_s"))

PARTITION = 0.5
"""Cuts an hour if only their length is given."""

NEEDED = {
    "down_s": (
        *("kill", "kill_between", "card_lost", "card_back", "store_lost", "store_back"),
        *("root_lost", "root_back", "move"),
    ),
    "slow_s": ("slow",),
    "redeliver": ("broker",),
}
"""Faults that have no effect without one of these."""

MOST_HOURS = 8784.0
SPARE = 5
SHORTEST_S = 0.01
MOST_FAILED = 0.8
NARROWEST = 40
DEEPEST, WIDEST = 6, 4096

FEATURES = 64
"""Default of --features: a simulated fleet has many nodes on one machine."""


@click.command(
    epilog="""\b
Example: submerge lab simulate --nodes 20 --hours 24 --loss 5% --outage 3h --seeds 20
         submerge lab simulate --dim 8 --rank 4 --kernel gaussian --seeds 20"""
)
@default_option("--nodes", 8, "Clients.", type=click.IntRange(1, 1_000_000))
@default_option(
    "--fan-in", 3, "Children of an aggregator; the root takes the rest.", type=click.IntRange(2)
)
@default_option(
    "--depth", 3, "Levels of aggregators, the root included.", type=click.IntRange(1, DEEPEST)
)
@default_option(
    "--hours",
    4.0,
    "Virtual time with sensors and faults; then faults end and the fleet settles.",
    type=float,
)
@default_option("--reading-every", "2m", "Interval of a client's readings.", type=duration)
@default_option(
    "--report-every",
    "10m",
    "Interval of reports; shorter costs bytes and gives newer models.",
    type=duration,
)
@click.option(
    "--faults",
    "preset",
    type=click.Choice(list(PRESETS)),
    help="Draw rates for each seed.  [default: swarm-1; none if a rate is given]",
)
@click.option("--loss", type=share, help="Messages that are lost.")
@click.option("--duplicate", type=share, help="Messages that arrive twice.")
@click.option("--reorder", type=share, help="Messages that are delayed by minutes.")
@click.option("--delay", "delay_s", type=duration, help="Mean delay of messages.  [default: 50ms]")
@click.option("--partition", type=rate, help="Cuts of a host's connection, an hour.")
@click.option(
    "--outage",
    "outage_s",
    type=duration,
    help="Mean length of a cut; without --partition and a preset,"
    f" {PARTITION} cuts an hour.  [default: 30m]",
)
@click.option("--kill", type=rate, help="Kills of a process, per host and hour.")
@click.option("--down", "down_s", type=duration, help="Mean time until its restart.  [default: 2m]")
@click.option("--broker", type=share, help="Parents behind a broker that repeats messages.")
@click.option("--failed-write", type=share, help="Writes to disk that fail.")
@click.option(
    "--fault",
    "others",
    multiple=True,
    metavar="NAME=VALUE",
    help=f"Any other fault; may be repeated. Events per host and hour: {', '.join(RARE)}."
    f" Shares: {', '.join(name for name in OTHERS if name in SHARES)}. Times:"
    f" {', '.join(name for name in OTHERS if name.endswith('_s'))}.",
)
@click.option(
    "--dim",
    type=click.IntRange(0, WIDEST),
    default=0,
    help="Channels of real subspaces; 0: sample ids instead.  [default: 0]",
)
@click.option("--rank", type=click.IntRange(1), help="Directions of the subspaces.")
@click.option("--oversample", type=click.IntRange(0), help="Spare directions.  [default: 5]")
@kernel_options(features=FEATURES)
@flag_option("--learn-scaling", "The fleet learns center and scale.")
@click.option("--half-life", type=duration, help="Time after which a reading counts half.")
@default_option("--seed", 0, "The first seed.", type=click.IntRange(0))
@default_option("--seeds", 1, "Number of seeds.", type=click.IntRange(1))
@default_option(
    "--jobs",
    1,
    "Processes that share the seeds; the result is the same.",
    type=click.IntRange(1, 256),
)
@json_option()
@QUIET
def command(
    preset: str | None,
    others: tuple[str, ...],
    dim: int,
    rank: int | None,
    oversample: int | None,
    learn_scaling: bool,
    half_life: float | None,
    seed: int,
    seeds: int,
    jobs: int,
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Run a fleet in virtual time with failures, and check invariants.

    Readings are sample ids. An oracle follows each of them and reports which of the invariants
    I1 to I14 a seed has broken (status 1, with the events that led to it and the command that
    repeats it). With --dim clients learn real subspaces instead: only the end state is checked,
    and the root's model is compared with exact PCA of all readings. With --kernel as well
    readings lie near a closed curve, and clients learn their features too.
    """
    kernel = taken(options)
    check(kernel)
    by_hand = {name: options.pop(name) for name in FLAGS}
    given = _given({name: value for name, value in by_hand.items() if value is not None}, others)
    if preset is None:
        preset = "none" if given else "swarm-1"
    if preset == RANKS and not dim:
        raise UsageError(f"--faults {RANKS} is for real subspaces: add --dim 24 --rank 8")
    if preset == "none":
        _refuse_what_has_no_effect(given)
        if "outage_s" in given:
            given.setdefault("partition", PARTITION)
    _check_times(options)
    if given.get("failed_write", 0.0) > MOST_FAILED:
        raise UsageError(
            f"--failed-write must be at most {MOST_FAILED:.0%}, got {given['failed_write']:.0%}:"
            " no process can start from a disk that fails more often"
        )
    plan = Plan(
        nodes=options["nodes"],
        fan_in=options["fan_in"],
        depth=options["depth"],
        hours=options["hours"],
        reading_every_s=options["reading_every"],
        report_every_s=options["report_every"],
        faults=preset,
        given=tuple(sorted(given.items())),
        **_subspaces(dim, rank, oversample, kernel, learn_scaling, half_life),
    )
    found = collect(plan, range(seed, seed + seeds), jobs=jobs, quiet=quiet)
    _print(found, as_json=as_json)
    sys.stdout.flush()
    if found.violations:
        # Not ctx.exit: the group is not standalone and would discard it.
        sys.exit(1)


def _print(found: Findings, *, as_json: bool) -> None:
    """Print results; for a violation also the events before it, and how to repeat it."""
    from rich.console import Console

    from submerge_lab.simulate.report import (
        Excerpt,
        excerpt_of,
        print_findings,
        print_violations,
    )

    console = Console(highlight=False)
    if console.width < NARROWEST:
        console = Console(highlight=False, width=80)
    if not as_json:
        # Before the seed is run again, which may take as long.
        print_findings(console, found)
    first = next(iter(found.violations), None)
    excerpt, repeat = Excerpt([], 0), None
    if first is not None:
        repeat = repeat_command(found.plan, first.seed)
        excerpt = excerpt_of(transcript(found.plan, first.seed))
    if as_json:
        more = {"transcript": excerpt.lines, "repeat": repeat}
        click.echo(json.dumps(found.figures() | more))
    elif repeat is not None:
        print_violations(console, found.violations, excerpt, repeat)


def repeat_command(plan: Plan, seed: int) -> str:
    """Return the command that runs one seed of a plan again."""
    times = {"--reading-every": plan.reading_every_s, "--report-every": plan.report_every_s}
    words = [
        *("submerge lab simulate --nodes", plan.nodes, "--fan-in", plan.fan_in),
        *("--depth", plan.depth, "--hours", plain(plan.hours)),
        *(f"{flag} {span_text(value)}" for flag, value in times.items()),
        *("--faults", plan.faults),
    ]
    for name, value in plan.given:
        strength = f"{plain(value)}s" if name.endswith("_s") else plain(value)
        words.append(f"{FLAGS[name]} {strength}" if name in FLAGS else f"--fault {name}={strength}")
    if plan.dim:
        words.append(f"--dim {plan.dim} --rank {plan.rank} --oversample {plan.oversample}")
    if plan.features is not None:
        words.append(written(plan.features))
    if plan.learns_scaling:
        words.append("--learn-scaling")
    if plan.half_life_s is not None:
        words.append(f"--half-life {span_text(plan.half_life_s)}")
    return " ".join(map(str, [*words, "--seed", seed]))


# -- options -----------------------------------------------------------------------


def _given(named: dict[str, float], others: tuple[str, ...]) -> dict[str, float]:
    """Return faults by name, those of `--fault NAME=VALUE` included."""
    given = dict(named)
    for other in others:
        name, equals, value = other.partition("=")
        name = name.strip().replace("-", "_")
        if not equals:
            raise UsageError(f"expected --fault NAME=VALUE, got {other!r}: add a value")
        if name not in NAMES:
            near = difflib.get_close_matches(name, NAMES, n=1)
            hint = (
                f"did you mean {near[0]!r}?" if near else "submerge lab simulate --help names them"
            )
            raise UsageError(f"there is no fault {name!r}: {hint}")
        if name in given:
            raise UsageError(f"expected fault {name} once, got it twice: leave one of them out")
        try:
            given[name] = _reader(name)(value)
        except click.BadParameter as error:
            raise UsageError(f"--fault {name}: {error.message}") from error
    return given


def _reader(name: str) -> Callable[[str], float]:
    """Return what reads a fault's strength."""
    if name.endswith("_s"):
        return duration
    return share if name in SHARES else rate


def _refuse_what_has_no_effect(given: dict[str, float]) -> None:
    """Refuse a fault that would be ignored."""
    for name, needed in NEEDED.items():
        if name in given and not any(given.get(other) for other in needed):
            raise UsageError(
                f"{_option(name)} has no effect alone: add {_option(needed[0])},"
                " or --faults with a preset"
            )


def _option(name: str) -> str:
    """Return a fault's option on the command line."""
    return FLAGS.get(name, f"--fault {name}")


def _check_times(options: dict[str, Any]) -> None:
    hours = options["hours"]
    if not 0.0 < hours <= MOST_HOURS:
        raise UsageError(
            f"--hours must be over 0 and at most {MOST_HOURS:g}, got {hours:g}: choose another"
        )
    for name in ("reading_every", "report_every"):
        if options[name] < SHORTEST_S:
            raise UsageError(
                f"--{name.replace('_', '-')} must be at least {span_text(SHORTEST_S)},"
                f" got {span_text(options[name])}: choose a longer one"
            )


def _subspaces(
    dim: int,
    rank: int | None,
    oversample: int | None,
    kernel: dict[str, Any],
    learns_scaling: bool,
    half_life: float | None,
) -> dict[str, Any]:
    """Return the fields of a plan for what clients learn."""
    if half_life is not None and half_life < SHORTEST_S:
        raise UsageError(
            f"--half-life must be at least {span_text(SHORTEST_S)}, got {span_text(half_life)}:"
            " choose a longer one"
        )
    if not dim:
        given = {"rank": rank, "oversample": oversample, "half-life": half_life}
        given["kernel"] = kernel.get("kernel")
        for name, value in given.items():
            if value is not None:
                raise UsageError(
                    f"--{name} is for real subspaces, but there is no --dim: add --dim 64"
                )
        return {"learns_scaling": learns_scaling}
    if rank is None:
        raise UsageError(f"expected --rank with --dim {dim}, got none: add --rank {min(8, dim)}")
    spare = SPARE if oversample is None else oversample
    features = feature_map(kernel, width=dim, features=FEATURES)
    _check_rank(rank, spare, dim, features)
    more = {"learns_scaling": learns_scaling, "half_life_s": half_life, "features": features}
    return {"dim": dim, "rank": rank, "oversample": spare} | more


def _check_rank(rank: int, spare: int, dim: int, features: FeatureMap | None) -> None:
    most, what = dim, f"--dim {dim}"
    if features is not None:
        most = features.dim(dim)
        what = f"--features {most}"
    if rank + spare > most:
        hint = f"add --oversample {most - rank}" if rank <= most else "lower --rank"
        raise UsageError(
            f"--rank and --oversample must be at most {what} together, got {rank} + {spare}: {hint}"
        )
