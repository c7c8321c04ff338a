"""`submerge demo`: the whole system in one process, on a generated room.

A room of 54 motes (room.py) is dealt in turn to eight clients; four at a time report
to an aggregator, both aggregators to a root; the root's model goes back down, and
clients score with it what they have not learnt yet (demo_fleet.py). From the scores
bad motes are singled out (demo_watch.py holds the rule). At the end the merged model
is held against exact PCA of all rows, and the alarms against the truth (demo_run.py).
"""

from __future__ import annotations

import importlib.util
import json
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import click
from rich.console import Console

from submerge_fleet.demo_run import Demo, Settings
from submerge_fleet.picture import check_target


@click.command(epilog="Example: submerge demo --days 14 --plot demo.png")
@click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True, help="Another is another room."
)
@click.option(
    "--days",
    type=click.FloatRange(1, 366),
    default=14.0,
    show_default=True,
    help="Length of the run; below ten, limits rest on little.",
)
@click.option(
    "--clients",
    type=click.IntRange(1, 200),
    default=8,
    show_default=True,
    help="Base stations; four to an aggregator.",
)
@click.option(
    "--rank",
    type=click.IntRange(1, 100),
    default=10,
    show_default=True,
    help="Directions to show; more cost bytes and let faults in.",
)
@click.option(
    "--plot", type=click.Path(path_type=Path, dir_okay=False), help="Draw the run into this PNG."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--quiet", is_flag=True, help="Show nothing while it runs.")
def command(
    seed: int, days: float, clients: int, rank: int, plot: Path | None, as_json: bool, quiet: bool
) -> None:
    """Show the whole system on a generated room of sensors, two weeks in a few seconds.

    Ends with the merged model against exact PCA, bytes moved, memory of a client, and
    the motes that were singled out against those that really went bad.
    """
    if plot is not None:
        # A missing extra, or a place that cannot be, is said before the work.
        from submerge_fleet.demo_plot import draw

        check_target(plot)
    console = Console(highlight=False)
    demo = Demo(Settings(seed=seed, days=days, clients=clients, rank=rank))
    began = time.perf_counter()
    with ExitStack() as stack:
        show = _shown(stack, demo, quiet=quiet, live=console.is_terminal and not as_json)
        for snapshots in demo.rounds():
            show(snapshots)
    seconds = time.perf_counter() - began
    outcome = demo.outcome()
    limit = demo.watch.limits.spe if demo.watch.limits else None
    if as_json:
        click.echo(json.dumps(outcome.figures() | {"seconds": round(seconds, 3)}))
    else:
        from submerge_fleet.demo_report import tell

        tell(console, outcome, demo.history, limit)
        rate = outcome.snapshots / seconds
        click.echo(f"{'time':<10} {seconds:.1f} s, {rate:,.0f} snapshots/s for the whole fleet")
    if plot is not None:
        draw(plot, demo, outcome)
        click.echo(f"{'picture':<10} {plot}", err=as_json)
    elif not as_json and importlib.util.find_spec("matplotlib") is None:
        click.echo("picture    --plot draws one: pip install 'submerge[plot]'")
    sys.stdout.flush()


def _shown(stack: ExitStack, demo: Demo, *, quiet: bool, live: bool) -> Callable[[int], None]:
    """Open what a person watches meanwhile; return what to call after each round."""
    if quiet:
        return lambda _: None
    if live:
        from submerge_fleet.demo_live import watching

        return stack.enter_context(watching(demo))
    from submerge_fleet.progress import advancing

    return stack.enter_context(advancing("demo", demo.room.n_snapshots))
