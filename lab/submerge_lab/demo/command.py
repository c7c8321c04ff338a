"""`submerge demo`: the whole system on a generated room, every node a process of its own.

Eight clients get the snapshots of 54 motes in turn, and report to two aggregators below a root,
over gRPC or MQTT: the programs that run in the field. The demo is their sensors, supervisor
(`run.py`) and operator (`alarms.py`); at the end it compares the alarms with the true faults.
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
from submerge_files.console.options import (
    FILE,
    FOLDER,
    QUIET,
    check_picture,
    default_option,
    flag_option,
    json_option,
)

if TYPE_CHECKING:
    from submerge_lab.demo.run import Demo, DemoOutcome

NEEDED = (
    *("msgspec", "google.protobuf", "grpc", "grpc_health"),
    *("prometheus_client", "starlette", "uvicorn"),
)
FOR_PAGE = ("jinja2",)
FOR_MQTT = ("paho.mqtt",)
FOR_OWN_BROKER = ("amqtt",)

RANK, KERNEL_RANK, FEATURES = 10, 16, 448
"""Defaults of `--rank` and `--features`: a curve takes more directions."""

SECONDS, DAY_S = 20.0, 60.0
"""Defaults of `--seconds`: for a whole run, and with `--page` for one of the room's days."""

OWN = "own"
"""The value of `--mqtt` when it is given without one."""


@click.command(
    epilog="Example: submerge demo --plot demo.png, or submerge demo --mqtt 127.0.0.1:1883"
)
@default_option("--seed", 0, "Seed of the room and its faults.", type=click.IntRange(0))
@default_option(
    "--days",
    14.0,
    "Days of the room; below ten, limits rest on few rows.",
    type=click.FloatRange(1, 366),
)
@click.option(
    "--seconds",
    type=click.FloatRange(1, 86400),
    show_default=f"{SECONDS:g}, with --page {DAY_S:g} for each day",
    help="How long the run takes; longer if the machine cannot keep up.",
)
@default_option(
    "--clients",
    8,
    "Clients, four to an aggregator, each a process of 60 MiB.",
    type=click.IntRange(1, 64),
)
@click.option(
    "--rank",
    type=click.IntRange(1, 100),
    show_default=f"{RANK}, with --kernel {KERNEL_RANK}",
    help="Directions of the model; more cost bytes and fit faults too.",
)
@flag_option("--kernel", "Learn features of a Gaussian kernel beside the readings.")
@click.option(
    "--features",
    type=click.IntRange(2, 4096),
    show_default=f"{FEATURES}, with --kernel",
    help="Kernel features, an even number; more cost bytes and time.",
)
@click.option(
    "--mqtt",
    is_flag=False,
    flag_value=OWN,
    metavar="[HOST:PORT]",
    help="Use MQTT, not gRPC: with the broker at HOST:PORT, or one that the demo starts.",
)
@click.option(
    "--keep",
    type=FOLDER,
    help="Keep configurations and stores in this folder, which must be new or empty.",
)
@click.option("--plot", type=FILE, help="Draw the run into this PNG.")
@flag_option("--page", "Go on until Ctrl-C, with the root's page, and start again what is killed.")
@json_option()
@QUIET
def command(
    seconds: float | None,
    rank: int | None,
    kernel: bool,
    features: int | None,
    mqtt: str | None,
    keep: Path | None,
    plot: Path | None,
    page: bool,
    as_json: bool,
    quiet: bool,
    **run: Any,
) -> None:
    """Show the whole system on a generated room of sensors, two weeks in a minute or two.

    The report says what became of the readings, bytes moved, memory of each process, faults found
    and missed, and false alarms. Exit status 1: a process failed.
    """
    _check_extras(mqtt, page=page)
    _check_page(page=page, ends=as_json or plot is not None)
    if features is not None and not kernel:
        raise UsageError(f"--features {features} is for a kernel group: give --kernel as well")
    if plot is not None:
        # Refuse a missing extra or an impossible path before the work.
        from submerge_lab.demo.plot import draw

        check_picture(plot)
    from submerge_lab.demo.fleet import FleetFailed
    from submerge_lab.demo.run import Demo, DemoSettings
    from submerge_lab.demo.site import open_wire

    rank = rank or (KERNEL_RANK if kernel else RANK)
    run["seconds"] = seconds or (run["days"] * DAY_S if page else SECONDS)
    settings = DemoSettings(rank=rank, features=(features or FEATURES) if kernel else 0, **run)
    broker = None if mqtt == OWN else mqtt
    console = Console(highlight=False)
    began = time.perf_counter()
    try:
        with ExitStack() as stack:
            stack.enter_context(_end_on_signals())
            folder = stack.enter_context(_folder(keep))
            wire = stack.enter_context(open_wire(broker, mqtt=mqtt is not None))
            if page:
                from submerge_lab.demo.page import PageDemo

                show = (lambda _: None) if quiet else click.echo
                PageDemo(settings, folder, wire, show).run()
                return
            demo = Demo(settings, folder, wire)
            live = console.is_terminal and not as_json
            outcome = demo.run(_open_display(stack, demo, quiet=quiet, live=live))
    except FleetFailed as error:
        click.echo(f"submerge: {error}", err=True)
        sys.exit(1)
    _print_report(console, demo, outcome, time.perf_counter() - began, as_json=as_json)
    if plot is not None:
        draw(plot, demo, outcome)
    _print_files(plot, keep, as_json=as_json)


def _print_report(
    console: Console, demo: Demo, outcome: DemoOutcome, took: float, *, as_json: bool
) -> None:
    if as_json:
        click.echo(json.dumps(outcome.figures() | {"took_s": round(took, 3)}))
        return
    from submerge_lab.demo.report import print_report

    limit = demo.watch.limits.spe if demo.watch.limits else None
    print_report(console, outcome, demo.history, limit)
    click.echo(f"{'time':<10} {took:.1f} s from the start of the first process to the last end")


def _print_files(plot: Path | None, keep: Path | None, *, as_json: bool) -> None:
    if plot is not None:
        click.echo(f"{'picture':<10} {plot}", err=as_json)
    elif not as_json and importlib.util.find_spec("matplotlib") is None:
        click.echo("picture    --plot draws one: pip install 'submerge[plot]'")
    if keep is not None:
        root = keep / "root.toml"
        click.echo(f"{'kept':<10} submerge aggregator --config {root} runs that root", err=as_json)
    sys.stdout.flush()


def _check_page(*, page: bool, ends: bool) -> None:
    if page and ends:
        raise UsageError("--page goes on until Ctrl-C: leave --json and --plot out")


def _check_extras(mqtt: str | None, *, page: bool) -> None:
    """Refuse, in one line, if a package is not installed."""
    needed = (
        NEEDED
        + (FOR_PAGE if page else ())
        + (FOR_MQTT if mqtt else ())
        + (FOR_OWN_BROKER if mqtt == OWN else ())
    )
    for module in needed:
        try:
            there = importlib.util.find_spec(module) is not None
        except ModuleNotFoundError:
            there = False
        if not there:
            raise UsageError(
                f"the demo needs {module}, which is not installed: pip install submerge-lab"
            )


@contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
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
def _end_on_signals() -> Iterator[None]:
    """Turn signals that end programs into exceptions, so that child processes are ended."""
    # SIGINT too: a shell script's `&` starts programs with it ignored. An ignored SIGHUP stays
    # ignored, as `nohup` asks.
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


def _open_display(stack: ExitStack, demo: Demo, *, quiet: bool, live: bool) -> Callable[[], None]:
    """Open the progress display; return what redraws it."""
    if quiet:
        return lambda: None
    if live:
        from submerge_lab.demo.live import show_live

        return stack.enter_context(show_live(demo))
    from submerge_files.console.progress import advancing

    advance, seen = stack.enter_context(advancing("demo", demo.room.n_snapshots)), 0

    def show() -> None:
        nonlocal seen
        advance(demo.dealer.dealt - seen)
        seen = demo.dealer.dealt

    return show
