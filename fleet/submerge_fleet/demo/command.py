"""`submerge demo`: the whole system on a generated room, every node a process of its own.

A room of 54 motes (room.py) is dealt in turn to eight clients; four at a time report to an
aggregator, both aggregators to a root; the root's model goes back down, and clients score
with it what they have not learnt yet. They are the programs that run in the field, over gRPC
or MQTT; the demo is their sensors, their supervisor and their operator (demo_run.py), who
takes motes out of service that their alarms name (demo_alarms.py). On the way a client and
an aggregator are killed. At the end every reading is accounted for
(demo_balance.py), the merged model is held against exact PCA of all rows, and the alarms
against the truth.
"""

from __future__ import annotations

import importlib.util
import json
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from submerge import UsageError
from submerge_fleet.console.options import FILE, FOLDER, QUIET, default_option, json_option
from submerge_fleet.console.picture import check_target

if TYPE_CHECKING:
    from submerge_fleet.demo.outcome import DemoOutcome
    from submerge_fleet.demo.run import Demo

NEEDED = (
    *("msgspec", "google.protobuf", "grpc", "grpc_health"),
    *("prometheus_client", "starlette", "uvicorn"),
)
FOR_MQTT = ("paho.mqtt",)
FOR_OWN_BROKER = ("amqtt",)

RANK, KERNEL_RANK, FEATURES = 10, 16, 512
"""What `--rank` and `--features` are if nothing is said: a curve takes more directions."""

OWN = "own"
"""What `--mqtt` means without a value."""


@click.command(
    epilog="Example: submerge demo --plot demo.png, or submerge demo --mqtt 127.0.0.1:1883"
)
@default_option("--seed", 0, "Another is another room.", type=click.IntRange(0))
@default_option(
    "--days",
    14.0,
    "Length of the run; below ten, limits rest on little.",
    type=click.FloatRange(1, 366),
)
@default_option(
    "--seconds",
    20.0,
    "How long these days take; more if the machine cannot keep up.",
    type=click.FloatRange(1, 86400),
)
@default_option(
    "--clients",
    8,
    "Base stations; four to an aggregator, each a process of 70 MB.",
    type=click.IntRange(1, 64),
)
@click.option(
    "--rank",
    type=click.IntRange(1, 100),
    show_default=f"{RANK}, with --kernel {KERNEL_RANK}",
    help="Directions to show; more cost bytes and let faults in.",
)
@click.option(
    "--kernel", is_flag=True, help="Learn features of a Gaussian kernel beside the readings."
)
@click.option(
    "--features",
    type=click.IntRange(2, 4096),
    show_default=f"{FEATURES}, with --kernel",
    help="How many, an even number; more cost bytes and time.",
)
@click.option(
    "--mqtt",
    is_flag=False,
    flag_value=OWN,
    metavar="[HOST:PORT]",
    help="Speak MQTT, not gRPC: through a broker that is there, or one of our own.",
)
@click.option(
    "--keep",
    type=FOLDER,
    help="Leave configurations and stores in this folder, which is made or empty.",
)
@click.option("--plot", type=FILE, help="Draw the run into this PNG.")
@json_option()
@QUIET
def command(
    seed: int,
    days: float,
    seconds: float,
    clients: int,
    rank: int | None,
    kernel: bool,
    features: int | None,
    mqtt: str | None,
    keep: Path | None,
    plot: Path | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Show the whole system on a generated room of sensors, two weeks in half a minute.

    Ends with every reading accounted for, the merged model against exact PCA, bytes moved,
    memory of each process, and the alarms: faults that were found and missed, and what was
    false. Exit status 1: a reading that was acknowledged is missing, or one is counted twice.
    """
    _check_extras(mqtt)
    if features is not None and not kernel:
        raise UsageError(f"--features {features} is for a kernel group: say --kernel as well")
    if plot is not None:
        # A missing extra, or a place that cannot be, is said before the work.
        from submerge_fleet.demo.plot import draw

        check_target(plot)
    from submerge_fleet.demo.fleet import FleetFailed
    from submerge_fleet.demo.outcome import DemoSettings
    from submerge_fleet.demo.run import Demo
    from submerge_fleet.demo.wires import wired

    settings = DemoSettings(
        seed=seed,
        days=days,
        clients=clients,
        rank=rank or (KERNEL_RANK if kernel else RANK),
        seconds=seconds,
        features=(features or FEATURES) if kernel else 0,
    )
    console = Console(highlight=False)
    began = time.perf_counter()
    try:
        with ExitStack() as stack:
            stack.enter_context(_ending_on_signals())
            folder = stack.enter_context(_folder(keep))
            wire = stack.enter_context(wired(None if mqtt == OWN else mqtt, mqtt=mqtt is not None))
            demo = Demo(settings, folder, wire)
            live = console.is_terminal and not as_json
            outcome = demo.run(_shown(stack, demo, quiet=quiet, live=live))
    except FleetFailed as error:
        click.echo(f"submerge: {error}", err=True)
        sys.exit(1)
    _tell(console, demo, outcome, time.perf_counter() - began, as_json=as_json)
    if plot is not None:
        draw(plot, demo, outcome)
    _tell_files(plot, keep, as_json=as_json)
    if outcome.balance.wrong:
        sys.exit(1)


def _tell(
    console: Console, demo: Demo, outcome: DemoOutcome, took: float, *, as_json: bool
) -> None:
    """Print what came of the run."""
    if as_json:
        click.echo(json.dumps(outcome.figures() | {"took_s": round(took, 3)}))
        return
    from submerge_fleet.demo.report import tell

    limit = demo.watch.limits.spe if demo.watch.limits else None
    tell(console, outcome, demo.history, limit)
    click.echo(f"{'time':<10} {took:.1f} s, from the first process's start to the last's end")


def _tell_files(plot: Path | None, keep: Path | None, *, as_json: bool) -> None:
    """Say what was written, and what could be."""
    if plot is not None:
        click.echo(f"{'picture':<10} {plot}", err=as_json)
    elif not as_json and importlib.util.find_spec("matplotlib") is None:
        click.echo("picture    --plot draws one: pip install 'submerge[plot]'")
    if keep is not None:
        root = keep / "root.toml"
        click.echo(f"{'kept':<10} submerge aggregator --config {root} runs that root", err=as_json)
    sys.stdout.flush()


def _check_extras(mqtt: str | None) -> None:
    """Refuse, in one line, where something is not installed."""
    needed = NEEDED + (FOR_MQTT if mqtt else ()) + (FOR_OWN_BROKER if mqtt == OWN else ())
    for module in needed:
        try:
            there = importlib.util.find_spec(module) is not None
        except ModuleNotFoundError:
            there = False
        if not there:
            raise UsageError(
                f"the demo needs {module}, which is not installed: pip install 'submerge[demo]'"
            )


@contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    """Yield the folder that the fleet lives in."""
    if keep is None:
        with TemporaryDirectory(prefix="submerge-demo-") as folder:
            yield Path(folder).resolve()
        return
    try:
        keep.mkdir(parents=True, exist_ok=True)
        empty = not any(keep.iterdir())
    except OSError as error:
        raise UsageError(f"expected a folder to keep the fleet in, got {error}") from error
    if not empty:
        raise UsageError(f"expected an empty folder to keep the fleet in, got {keep}: name another")
    yield keep.resolve()


@contextmanager
def _ending_on_signals() -> Iterator[None]:
    """Leave in order at each signal that ends programs: no process of ours may stay behind.

    SIGINT too: a shell script's `&` starts programs with it ignored. A SIGHUP that is ignored
    stays so, for `nohup` asks for that.
    """
    handlers: dict[int, Any] = {signal.SIGTERM: _leave, signal.SIGINT: signal.default_int_handler}
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        handlers[signal.SIGHUP] = _leave
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _leave(number: int, _: object) -> None:
    sys.exit(128 + number)


def _shown(stack: ExitStack, demo: Demo, *, quiet: bool, live: bool) -> Callable[[], None]:
    """Open what a person watches meanwhile; return what to call every now and then."""
    if quiet:
        return lambda: None
    if live:
        from submerge_fleet.demo.live import watching

        return stack.enter_context(watching(demo))
    from submerge_fleet.console.progress import advancing

    advance, seen = stack.enter_context(advancing("demo", demo.room.n_snapshots)), 0

    def show() -> None:
        nonlocal seen
        advance(demo.dealer.dealt - seen)
        seen = demo.dealer.dealt

    return show
