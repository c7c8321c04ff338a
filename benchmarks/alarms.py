"""How often alarms are false, what they find, how soon, and whether they name the right channel.

40 nodes of a generated plant (docs/plants.md) for 30 virtual days: real `ClientNode`s below a
real root, an hour's worth of rows at a time, a model an hour. `--mode` says what is asked:

- rates: promised and realised false alarms; each kind of fault found, how late, and by which
  channel. An alarm is false if it began while nothing was wrong with its node. Alarms by
  provisional limits are counted apart. With `--seeds` it sums over several fleets, and `--against`
  compares with former runs.
- steady: one channel 10 scales off for 7 days at 1, 2 and 4 nodes, with and without the gate.
- thousand: one channel times 1000 at every node, scaling left to the fleet: the same alarms?
- young: a node with ten readings of its own, against a model of those ten alone.
"""

import json
import shlex
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import nullcontext
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import click

import blas  # noqa: F401 (before numpy: it sets one thread)
import recorded
from alarms_asked import steady, thousand, young
from alarms_judged import WEEK_S, judged
from alarms_tables import against, former, tables
from fleet_in_time import EPOCH, Fleet, without_gate
from plants.plant import PLANTS, Plant, plant
from report import JSON_HELP, command_of
from submerge.protocol.settings import AlarmSettings

NODE_DAYS = 40 * 30
"""Of a run at its defaults; fewer make a quick one."""


def run(
    name: str,
    seed: int,
    drawn: dict[str, Any],
    settings: AlarmSettings,
    *,
    robust: bool,
    gated: bool,
) -> dict[str, Any]:
    """Run a plant from start to end; return its outcome as JSON holds it."""
    fleet = Fleet(plant(name, seed=seed, **drawn), settings, seed=seed, robust=robust)
    with nullcontext() if gated else without_gate():
        while fleet.hour < fleet.hours:
            fleet.passes()
    fleet.ends()
    outcome: dict[str, Any] = json.loads(as_json([asdict(judged(fleet, seed))]))["runs"][0]
    return outcome


def as_json(runs: object) -> str:
    """Return runs as text, every alarm and fault in it."""
    return json.dumps({"epoch": EPOCH, "runs": runs}, default=str)


def all_runs(
    names: Sequence[str], seeds: Sequence[int], one: Any, *, processes: int, keep: Path | None
) -> Iterator[dict[str, Any]]:
    """Run every plant with every seed, say so on stderr, and keep each outcome."""
    with ProcessPoolExecutor(processes) as pool:
        jobs = {pool.submit(one, name, seed): (name, seed) for seed in seeds for name in names}
        for i, job in enumerate(as_completed(jobs), 1):
            name, seed = jobs[job]
            click.echo(f"{name} {seed}: {i} of {len(jobs)}", err=True)
            if keep is not None:
                keep.mkdir(parents=True, exist_ok=True)
                (keep / f"{name}-{seed}.json").write_text(as_json([job.result()]))
            yield job.result()


def seeds_of(text: str) -> list[int]:
    """Return seeds of a text such as "3", "100-104" or "1,5"."""
    ends = [part.partition("-") for part in text.split(",")]
    try:
        return [
            seed for first, _, last in ends for seed in range(int(first), int(last or first) + 1)
        ]
    except ValueError:
        raise click.BadParameter(f'expected such as 3, 1,5 or 100-104, got "{text}"') from None


@click.command(help=__doc__)
@click.option("--mode", type=click.Choice(["rates", "steady", "thousand", "young"]))
@click.option("--plant", "names", type=click.Choice([*PLANTS]), multiple=True)
@click.option("--days", default=30, show_default=True)
@click.option("--nodes", default=40, show_default=True)
@click.option("--seeds", default="0", show_default=True, help="Such as 3, or 100-104.")
@click.option("--processes", default=1, show_default=True, help="Runs at the same time.")
@click.option(
    "--against",
    "old",
    type=click.Path(exists=True, path_type=Path),
    multiple=True,
    help="Compare with former runs: their JSON, or a folder of it.",
)
@click.option(
    "--keep", type=click.Path(path_type=Path), help="A folder for the JSON of each run that ends."
)
@click.option("--at-most", default=1.0, show_default=True, help="False alarms a node and week.")
@click.option("--after", default=5, show_default=True, help="So many rows over the limit ...")
@click.option("--of", default=8, show_default=True, help="... of the last so many.")
@click.option("--settle-days", default=3.0, show_default=True)
@click.option("--withheld-days", default=1.0, show_default=True)
@click.option("--robust", is_flag=True, help="Leave nodes out of the model that are far off.")
@click.option("--without-gate", "ungated", is_flag=True, help="Learn what is alarmed at.")
@click.option("--json", "in_json", is_flag=True, help="Print JSON, every alarm and fault in it.")
@click.option(
    "--record", "as_record", is_flag=True, help=JSON_HELP.replace("JSON", "the tables as JSON")
)
def main(
    mode: str | None,
    names: tuple[str, ...],
    days: int,
    nodes: int,
    seeds: str,
    processes: int,
    old: tuple[Path, ...],
    keep: Path | None,
    at_most: float,
    after: int,
    of: int,
    settle_days: float,
    withheld_days: float,
    robust: bool,
    ungated: bool,
    in_json: bool,
    as_record: bool,
) -> None:
    """Run it, and print the tables."""
    settings = AlarmSettings(
        at_most_per_s=at_most / WEEK_S,
        after=after,
        of=of,
        settle_s=86400 * settle_days,
        max_withheld_s=86400 * withheld_days,
    )
    numbers = seeds_of(seeds)
    seed = numbers[0]
    drawn = {"nodes": nodes, "days": days, "quiet_days": days / 3}

    def fleets(**options: object) -> list[Plant]:
        return [plant(name, seed=seed, **drawn, **options) for name in names or PLANTS]

    match mode:
        case "steady":
            printed, reported = steady(names or ("loop",), nodes, days, seed, settings)
        case "thousand":
            printed, reported = thousand(fleets(), settings, seed)
        case "young":
            printed, reported = young(fleets(faults=()), settings, seed)
        case _:
            one = partial(run, drawn=drawn, settings=settings, robust=robust, gated=not ungated)
            every = all_runs(names or [*PLANTS], numbers, one, processes=processes, keep=keep)
            runs = sorted(every, key=lambda each: (each["plant"], each["seed"]))
            printed, reported = tables(runs), runs
            if old:
                printed += against(runs, former(old))
    if in_json:
        click.echo(as_json(reported))
    elif as_record:
        asked = shlex.join(each for each in sys.argv[1:] if each != "--record")
        module, quick = sys.modules[__name__], nodes * days < NODE_DAYS
        click.echo(recorded.record(module, command_of(module, asked), printed, quick=quick))
    else:
        click.echo("\n\n".join(table.markdown for table in printed))


if __name__ == "__main__":
    main()
