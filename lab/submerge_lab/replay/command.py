"""`submerge replay`: files learnt as a stream."""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import click

from submerge import UsageError
from submerge_files.console.options import (
    FILE,
    FILES,
    QUANTITY,
    ZERO_IS_MISSING,
    check_picture,
    flag_option,
    json_option,
    skip_option,
)
from submerge_files.console.units import printable, size_of
from submerge_lab.kernel_options import check, feature_map, kernel_options, option, taken
from submerge_lab.replay.kernel import MOST_ROWS, KernelFigures
from submerge_lab.replay.run import ReplayOutcome, replay
from submerge_lab.replay.settings import (
    PAPER,
    PAPER_DEFAULTS,
    ReplaySettings,
    refuse_what_goes_without_a_kernel,
    refuse_what_has_no_effect,
)
from submerge_lab.replay.stacked import Stacked, stacked

WITH_OTHERS = ("own", "fleet")
"""Ways of centering that need several nodes."""

INTO_ONLY = ("parent", "group", "node", "speed", "fleet_scaling", "insecure", "ca", "cert", "key")

FEATURES = 512
"""Default of --features."""


@click.command(
    epilog="""\b
Example: submerge replay light.dat.gz --rank 10 --plot light.png
         submerge replay light.dat.gz --kernel gaussian --features 512"""
)
@FILES
@click.option("--rank", type=int, help="Directions to keep, or to start with.  [default: 10]")
@click.option(
    "--rank-rule",
    type=click.Choice(["fixed", "sapca", "energy"]),
    help="Keep the rank; change it by the paper's rule; by share of energy.  [default: fixed]",
)
@click.option(
    "--alpha",
    type=float,
    help="sapca: shrink below this share.  [default: 0.01; with a kernel 0.005]",
)
@click.option(
    "--beta", type=float, help="sapca: grow above this share.  [default: 0.1; with a kernel 0.03]"
)
@click.option(
    "--energy", type=float, nargs=2, help="energy: stay between these.  [default: 0.95 0.98]"
)
@click.option(
    "--hold-off",
    type=int,
    help="sapca, energy: blocks to wait after each change of the rank.  [default: 0]",
)
@click.option(
    "--block",
    type=int,
    help="Rows learnt at once; more cost memory.  [default: rank + oversample + 30;"
    " with a kernel 64; with --paper 50]",
)
@click.option(
    "--oversample",
    type=int,
    help="Spare directions kept; more cost memory and buy accuracy.  [default: 5]",
)
@click.option(
    "--exact",
    type=click.Choice(["auto", "never"]),
    help="auto: keep the whole scatter, up to some 400 columns.  [default: auto]",
)
@click.option(
    "--center",
    type=click.Choice(["stream", "none", "offline", *WITH_OTHERS]),
    help="Subtract the running mean; nothing; the mean of all rows first.  [default: stream]"
    "  into: as the group's schema has it, own, fleet or none.  [default: own]",
)
@click.option(
    "--forgetting-factor",
    type=float,
    help="Each row multiplies the weight of the rows before it by this.  [default: 1]",
)
@click.option(
    "--missing",
    type=click.Choice(["reject", "drop", "impute"]),
    help="Refuse gaps; leave out their rows; fill them.  [default: reject]",
)
@ZERO_IS_MISSING
@QUANTITY
@skip_option("Leave a column out, by name; may be repeated.")
@click.option("--leaves", type=click.IntRange(1), help="Deal rows to N leaves.  [default: 1]")
@click.option(
    "--fan-in", type=int, help="Children of a node in the tree: a power of two.  [default: 4]"
)
@click.option(
    "--deal",
    type=click.Choice(["turn", "runs"]),
    help="Deal rows in turn, or a run of rows to each leaf.  [default: turn]",
)
@flag_option(
    "--paper",
    "The paper's algorithm, corrected: sapca rule, no spare directions, never exact,"
    " offline centering, only whole blocks, of 50 rows.",
)
@flag_option(
    "--bounds",
    "sapca, energy: learn the rows at the least and at the largest rank of the rule, too.",
)
@flag_option(
    "--over-time",
    "Error of all rows so far at the end of each block: in the JSON, and in the picture.",
)
@click.option(
    "--into",
    metavar="URL",
    help="Send rows to a running fleet: grpc://HOST:PORT or mqtt://BROKER; grpcs, mqtts with TLS.",
)
@click.option("--parent", help="into: the aggregator's name.  [default: root]")
@click.option("--group", help="into: the group that the rows belong to.")
@click.option("--node", help="into: a name for the client.  [default: replay]")
@click.option(
    "--speed", type=click.FloatRange(0), help="into: rows a second and leaf.  [default: all]"
)
@flag_option("--fleet-scaling", "into: the group has scaling = fleet; rows wait until it is known.")
@flag_option("--insecure", "into: allow a connection without TLS.")
@click.option("--ca", type=click.Path(path_type=Path), help="into: trusted authority, a PEM file.")
@click.option(
    "--cert", type=click.Path(path_type=Path), help="into: the client's certificate, with --key."
)
@click.option("--key", type=click.Path(path_type=Path), help="into: the key of --cert.")
@kernel_options(features=FEATURES)
@click.option(
    "--plot", type=FILE, help="Draw error and rank over time, and the spectrum, into this PNG."
)
@json_option()
def command(
    files: tuple[Path, ...],
    quantity: str,
    skip: tuple[str, ...],
    paper: bool,
    plot: Path | None,
    as_json: bool,
    into: str | None,
    **options: Any,
) -> None:
    """Stream FILEs through one SAPCA, or through a tree of them.

    FILEs are whitespace matrices (as of the SPIRIT Motes set), Intel Lab logs, CSV or .npy,
    plain or gzip. With --into a client of its own sends the rows to a running fleet, until its
    parent holds them. Otherwise the result is compared with exact PCA of the same rows. Errors,
    bounds and energy are per row, in squared units of the data. With --kernel they are of the
    rows' features, and the excess over exact kernel PCA is shown too, on at most 2000 rows.
    """
    kernel = taken(options)
    # 0 is a value (and refused below); a flag that is not given is False.
    given = {k: v for k, v in options.items() if v is not None and v != () and v is not False}
    if into is not None:
        if paper or plot is not None:
            raise UsageError("--paper and --plot have no effect with --into: leave them out")
        table = stacked(files, quantity=quantity, skip=skip)
        _send(into, table, given, kernel, as_json=as_json)
        return
    if given.get("center") in WITH_OTHERS:
        raise UsageError(f"--center {given['center']} has an effect with --into only")
    for name in INTO_ONLY:
        if name in given:
            raise UsageError(f"{option(name)} has an effect with --into only")
    if "kernel" in kernel:
        refuse_what_goes_without_a_kernel(given, paper=paper)
    check(kernel)
    stands_for = PAPER if paper else {}
    refuse_what_has_no_effect(given, stands_for, seen=as_json or plot is not None)
    if plot is not None:
        # Refuse a missing extra or an impossible path before the work.
        from submerge_lab.replay.plot import draw

        check_picture(plot, inputs=files)
    table = stacked(files, quantity=quantity, skip=skip)
    map_ = feature_map(kernel, width=table.rows.shape[1], features=FEATURES)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        chosen = (PAPER_DEFAULTS if paper else {}) | given | stands_for
        settings = ReplaySettings(features=map_, **chosen)
        outcome, curves = replay(table, settings, watch=plot is not None)
    for warning in caught:
        click.echo(printable(f"note: {warning.message}"), err=True)
    click.echo(json.dumps(outcome.figures()) if as_json else text(outcome))
    if plot is not None:
        draw(plot, outcome, curves)
        click.echo(f"{'picture':<12} {plot}", err=as_json)


def _send(
    into: str, table: Stacked, given: dict[str, Any], kernel: dict[str, Any], *, as_json: bool
) -> None:
    from submerge_lab.replay.into import NotAcknowledged, send

    for note in table.notes:
        click.echo(printable(f"note: {note}"), err=True)
    map_ = feature_map(kernel, width=table.rows.shape[1], features=FEATURES)
    try:
        click.echo(send(into, table, given, map_, as_json=as_json))
    except NotAcknowledged as error:
        click.echo(f"submerge: {error}", err=True)
        # Not ctx.exit: the group is not standalone and would discard it.
        sys.exit(1)


# -- for people ----------------------------------------------------------------------


def text(outcome: ReplayOutcome) -> str:
    """Return the outcome as text."""
    filled = " as filled" if outcome.filled else ""
    bounds = f"frobenius {outcome.frobenius_bound:.6g}, spectral {outcome.spectral_bound:.6g}"
    kernel = outcome.kernel
    lines = [
        ("algorithm", outcome.algorithm),
        ("rows", f"{outcome.rows} of {outcome.dim} columns"),
    ]
    if kernel is not None:
        size = f"{kernel.features} features, {kernel.map}"
        lines.append(("kernel", f"{kernel.kernel}, gamma {kernel.gamma:.6g}; {size}"))
    lines += [
        ("rank", f"{outcome.rank}"),
        ("error", f"{outcome.error:.6g} per row, over all rows{filled}"),
        ("optimum", f"{outcome.optimum:.6g} per row, exact PCA at that rank"),
        ("ratio", _ratio(outcome.ratio)),
        *_at_ranks(outcome),
        *_hidden(outcome),
        *_excess(kernel),
        ("bounds", bounds),
        ("energy", f"{outcome.energy:.6g} per row"),
        ("speed", f"{outcome.rows_per_s:,.0f} rows/s, {outcome.seconds:.3g} s in all"),
        ("memory", f"{size_of(outcome.peak_bytes, decimals=1)} at most, one estimator"),
        ("fall-backs", f"{outcome.fallbacks} blocks"),
    ]
    counts = {
        "values that were 0 and read as missing": outcome.zeros,
        "missing values filled": outcome.filled,
        "rows with missing values dropped": outcome.dropped,
    }
    lines += [("gaps", f"{what}: {count}") for what, count in counts.items() if count]
    lines += [("note", note) for note in outcome.notes]
    return "\n".join(f"{name:<12} {value}" for name, value in lines)


def _ratio(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.9g}"


def _at_ranks(outcome: ReplayOutcome) -> list[tuple[str, str]]:
    words = {"lo": "the least that the rule chose", "hi": "the largest"}
    return [
        (
            f"fixed {name}",
            f"rank {each.rank}, {words[name]}: error {each.error:.6g}, ratio {_ratio(each.ratio)}",
        )
        for name, each in (outcome.bounds or {}).items()
    ]


def _hidden(outcome: ReplayOutcome) -> list[tuple[str, str]]:
    if outcome.hidden_error is None:
        return []
    return [("hidden", f"{outcome.hidden_error:.6g} per known value that was hidden on purpose")]


def _excess(kernel: KernelFigures | None) -> list[tuple[str, str]]:
    if kernel is None:
        return []
    if kernel.excess is None:
        return [("excess", "undefined: exact kernel PCA at that rank misses nothing")]
    return [("excess", f"{kernel.excess:.3g} % over exact kernel PCA, on at most {MOST_ROWS} rows")]
