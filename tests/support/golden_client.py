"""What golden checkpoints hold: clients of a linear group and of a kernel group, and young ones."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from submerge.client.alarms.blocks import KeptBlocks
from submerge.client.alarms.detector import DetectorState, SilentChannels
from submerge.client.incarnation import Checkpoint
from submerge.client.measurement import MeasuredRows
from submerge.client.monitor_state import MonitorState
from submerge.client.pending_finals import Past
from submerge.pca.own_scatter import KAPPAS, OwnScatter
from submerge.protocol.alarm_status import Looks
from submerge.protocol.desired_state import DesiredState
from submerge.protocol.messages import Counts, Incarnation, Pin, Told
from submerge.protocol.summaries import Method
from submerge.stats.departures import Departures
from submerge.stats.duty import DutyCycles
from submerge.stats.node_mean import OwnMean
from submerge.stats.residual_scale import ResidualScale
from submerge.stats.resolution import Resolution
from submerge.stats.stuck import Habits, RunLengths
from support import golden_blocks, golden_factors, golden_levels
from support import golden_parts as parts
from support.golden_parts import KERNEL, LINEAR, OPEN_KERNEL, OPEN_LINEAR, SITE, numbers

LIFE = Incarnation(1_700_000_000_123, 0x0123456789ABCDEF)
EARLIER = Incarnation(1_690_000_000_001, 11), Incarnation(1_680_000_000_002, 12)
ABSORBED = Incarnation(1_670_000_000_003, 13)
PIN = Pin(parent="site-7", incarnation=SITE, top=True)
BEFORE = Pin(parent="site-6", incarnation=Incarnation(1_600_000_000_111, 6), top=True)


def _past(group: str, node: str, summary: Any) -> Past:
    """Return two finals that wait, and the rest."""
    states = iter((3, 4))
    finals = tuple(
        Checkpoint(
            report=parts.report(
                node,
                group,
                current,
                30 + i,
                summary=summary,
                alarm_status=parts.alarm_status(node, next(states)),
            ),
            pin=(PIN, BEFORE)[i],
            delivered=1000 + i,
        )
        for i, current in enumerate(EARLIER)
    )
    return Past(finals=finals, absorbed=ABSORBED, lost=21, lifetime=500_022)


def _mean(first: float, width: int, dim: int | None) -> OwnMean:
    return OwnMean(
        rows=numbers(first, width),
        features=None if dim is None else numbers(first + 1, dim),
        weight=2000.5 + first,
        count=3000 + int(first),
        span_s=90_000.25 + first,
    )


def _habits(channels: int) -> Habits:
    """Return habits; of the last channel nothing was ever said by the others."""
    others, then = numbers(5.0, channels), numbers(6.0, channels)
    others[-1] = then[-1] = np.nan
    return Habits(
        weight=numbers(1000.5, channels),
        mean=numbers(1.0, channels),
        scatter=numbers(2000.0, channels),
        error=numbers(30.0, channels),
        learnt=np.arange(channels) + 4000,
        others=others,
        others_then=then,
        stuck=np.arange(channels) % 3 == 1,
    )


def _repeats(channels: int) -> RunLengths:
    """Return repeats; the last channel was never heard."""
    last, lowest, highest = (numbers(first, channels) for first in (7.5, 3.5, 11.5))
    last[-1] = lowest[-1] = highest[-1] = np.nan
    run, longest, at_lowest, at_highest = (
        np.where(np.arange(channels) < channels - 1, np.arange(channels) + first, 0)
        for first in (10, 20, 30, 40)
    )
    return RunLengths(
        last=last,
        lowest=lowest,
        highest=highest,
        run=run,
        longest=longest,
        at_lowest=at_lowest,
        at_highest=at_highest,
    )


def _detector(node: str, channels: int, cause: str) -> DetectorState:
    hours = KeptBlocks(
        windows={
            "spe": (parts.fine_sketch(101), parts.fine_sketch(102)),
            "t2": (parts.fine_sketch(103), parts.fine_sketch(104)),
            "linear": (parts.fine_sketch(105), parts.fine_sketch(106)),
            "channel": (parts.fine_sketch(107), parts.fine_sketch(108)),
        },
        blocks=720,
        spared={"spe": 1.5, "t2": 1.625, "linear": 1.75, "channel": 1.875},
        watched_s=86_400.5,
        allowed=0.125,
    )
    return DetectorState(
        alarms=parts.alarms(node, cause),
        held_s=90_000.75,
        frozen={"spe": 2.5, "t2": 3.5, "linear": 4.5, "channel": 5.5},
        blame=numbers(0.25, channels, 0.0625),
        excused=(1, 3),
        raised=6,
        confirmed=2,
        hours=hours,
    )


def _monitor(
    node: str, group: str, summary: Any, desired: DesiredState, cause: str
) -> MonitorState:
    schema = LINEAR if isinstance(summary, parts.Subspace) else KERNEL
    width, dim = schema.width, None if schema.linear else schema.dim
    return MonitorState(
        fingerprint=schema.fingerprint,
        own=_mean(1.0, width, dim),
        detector=_detector(node, width, cause),
        desired=desired,
        reference=parts.model(group, summary=summary, first=5),
        held=_mean(2.0, width, dim),
        run_lengths=_repeats(width),
        habits=_habits(width),
        residual_scale=ResidualScale(
            squares=numbers(0.5, width), weight=numbers(300.0, width), span_s=100_000.125
        ),
    )


def _client(
    node: str, group: str, summary: Any, desired: DesiredState, cause: str
) -> dict[Any, Any]:
    checkpoint = parts.report(node, group, LIFE, 12, summary=summary)
    return {
        ("checkpoint",): Checkpoint(report=checkpoint, pin=PIN, delivered=8000),
        ("past",): _past(group, node, summary),
        ("model",): parts.model(group, summary=summary, first=3),
        ("lookout",): _monitor(node, group, summary, desired, cause),
    }


def of_a_linear_group() -> dict[Any, Any]:
    """A client that learns through an open alarm, and whose operator has stopped it."""
    desired = DesiredState(
        node="pump-3",
        number=1_700_086_400_777,
        paused=True,
        verdicts=((1_700_086_389_000, True), (1_700_086_388_000, False)),
    )
    return _client("pump-3", "pumps", parts.linear(), desired, "spe")


def of_a_narrow_group() -> dict[Any, Any]:
    """A client that keeps its whole scatter, as it was learnt; finals are as they came."""
    report = parts.report("pump-3", "pumps", LIFE, 12, summary=parts.whole(dtype="<f8"))
    return {
        ("checkpoint",): Checkpoint(report=report, pin=PIN, delivered=8000),
        ("past",): _past("pumps", "pump-3", parts.whole()),
    }


def of_a_group_with_noise() -> dict[Any, Any]:
    """The model of a group whose models carry noise."""
    held = of_a_linear_group()
    return {("model",): replace(held["model",], epsilon=0.75, told=Told(19, 0.375))}


def of_a_group_with_a_rank() -> dict[Any, Any]:
    """A client whose root has chosen a rank."""
    kept = of_a_linear_group()
    return {**kept, ("model",): replace(kept["model",], rank=5)}


def of_a_group_with_factors() -> dict[Any, Any]:
    """The client of a linear group, whose model has a noise for each channel."""
    kept = of_a_linear_group()
    first = kept["checkpoint",]
    return {
        ("checkpoint",): replace(first, report=golden_factors.report(first.report)),
        ("model",): golden_factors.model(kept["model",]),
        ("lookout",): golden_factors.monitor(kept["lookout",]),
        ("past",): replace(
            kept["past",],
            finals=tuple(
                replace(each, report=golden_factors.report(each.report))
                for each in kept["past",].finals
            ),
        ),
    }


def of_a_moving_average() -> dict[Any, Any]:
    """The client of a linear group, whose alarms are raised by the moving average of distances."""
    kept = of_a_group_with_factors()
    first, lookout = kept["checkpoint",], kept["lookout",]
    scores, status = first.report.scores, first.report.alarm_status
    maxima = replace(scores.maxima, ewma=parts.fine_sketch(211))
    alarms = tuple(replace(each, cause="ewma") for each in status.alarms[:-1])
    alarms += (replace(status.alarms[-1], cause="silent"),)
    report = replace(
        first.report,
        scores=scores._replace(maxima=maxima),
        method=Method("SAPCA, alpha 0.01, beta 0.1", 7, 0.75, 1.5),
        alarm_status=replace(status, alarms=alarms),
    )
    hours = lookout.detector.hours
    windows = {**hours.windows, "ewma": (parts.fine_sketch(212), parts.fine_sketch(213))}
    spared, frozen = {**hours.spared, "ewma": 2.5}, {**lookout.detector.frozen, "ewma": 8.5}
    detector = replace(
        lookout.detector, hours=replace(hours, windows=windows, spared=spared), frozen=frozen
    )
    channels = len(lookout.run_lengths.last)
    resolution = Resolution(*(numbers(first, channels) for first in (3.0, 0.1, 0.01, 5.0)))
    scatter = OwnScatter(np.eye(channels), 90.0, 0 * np.eye(channels), 0.0, (-7.0,) * len(KAPPAS))
    silences = SilentChannels(*(numbers(first, channels) for first in (60.0, 600.0, 86400.0)))
    seen = replace(lookout, detector=detector, resolution=resolution, scatter=scatter)
    seen = replace(seen, silences=silences, unsure=numbers(0.5, len(seen.own.rows)))
    return {**kept, ("checkpoint",): replace(first, report=report), ("lookout",): seen}


def of_blocks() -> dict[Any, Any]:
    """A client whose blocks are no hours, and whose limits are provisional."""
    kept = of_a_linear_group()
    first = kept["checkpoint",]
    return {
        ("checkpoint",): replace(first, report=golden_blocks.report(first.report)),
        ("model",): golden_blocks.model(kept["model",]),
        ("lookout",): golden_blocks.monitor(kept["lookout",]),
    }


def of_looks() -> dict[Any, Any]:
    """A client whose alarms say whether they look like a sensor or like the process."""
    kept = of_a_linear_group()
    first, detector = kept["checkpoint",], kept["lookout",].detector
    seen = replace(detector, alarms=golden_blocks.looking(detector.alarms))
    return {
        ("checkpoint",): replace(first, report=golden_blocks.report_with_looks(first.report)),
        ("lookout",): replace(kept["lookout",], detector=seen),
    }


def of_two_states() -> dict[Any, Any]:
    """A client whose channels go to and fro between two states, with alarms that name twins."""
    (_, first), *_, (_, lookout) = of_a_linear_group().items()
    duty = DutyCycles(*(numbers(0.5 + i, len(lookout.run_lengths.last)) for i in range(12)))
    status = first.report.alarm_status
    more = {"cause": "duty", "looks": Looks("sensor", 2, 0.5, True)}
    status = replace(status, alarms=tuple(replace(a, **more) for a in status.alarms))
    first = replace(first, report=replace(first.report, alarm_status=status))
    return {("checkpoint",): first, ("lookout",): replace(lookout, duty=duty)}


def of_jumps() -> dict[Any, Any]:
    """The same where channels jump."""
    (key, first), (last, lookout) = of_two_states().items()
    known = Departures(*(numbers(0.5 + i, len(lookout.run_lengths.last)) for i in range(11)))
    status = first.report.alarm_status
    status = replace(status, alarms=tuple(replace(a, cause="jump") for a in status.alarms))
    first = replace(first, report=replace(first.report, alarm_status=status))
    return {key: first, last: replace(lookout, departures=known)}


def of_what_comes_back() -> dict[Any, Any]:
    """The same with repeated alarms, and a new certificate."""
    (key, first), (last, lookout) = of_two_states().items()
    status = first.report.alarm_status
    status = replace(status, alarms=tuple(replace(a, repeated=True) for a in status.alarms))
    first = replace(first, report=replace(first.report, alarm_status=status))
    desired = replace(lookout.desired, number=7, certificate=b"-----BEGIN CERTIFICATE-----")
    return {key: first, last: replace(lookout, desired=desired)}


def of_a_kernel_group() -> dict[Any, Any]:
    """A client of two memories, whose alarm is that a channel is stuck."""
    desired = DesiredState(
        node="press-3", number=1_700_086_400_778, paused=False, verdicts=((7, False), (8, True))
    )
    return _client("press-3", "presses", parts.kernel(), desired, "stuck")


def of_a_level() -> dict[Any, Any]:
    """The client of a kernel group, while the rows of its alarm keep to a new level."""
    kept = of_a_kernel_group()
    return kept | {("lookout",): golden_levels.monitor(kept["lookout",])}


def of_a_drill() -> dict[Any, Any]:
    """The client of a kernel group, which has been asked for a drill."""
    kept = of_a_kernel_group()["lookout",]
    return {("lookout",): replace(kept, desired=replace(kept.desired, drill=1_700_086_400_705))}


def while_the_scaling_is_worked_out() -> dict[Any, Any]:
    """A client that has moments to tell, and nothing learnt: not even how large channels are."""
    report = parts.report(
        "pump-4",
        "pumps",
        LIFE,
        3,
        summary=None,
        fingerprint=OPEN_LINEAR.fingerprint,
        counts=Counts(learnt=60, withheld=2, lost=1),
        scores=None,
        alarm_status=parts.alarm_status("pump-4", 0),
        synced=False,
    )
    return {
        ("checkpoint",): Checkpoint(report=report, pin=PIN, delivered=31),
        ("past",): Past(absorbed=ABSORBED, lost=4, lifetime=55),
    }


def with_readings_that_were_measured() -> dict[Any, Any]:
    """A client that keeps what it has measured: a scatter; earlier, readings as well."""
    schema = OPEN_LINEAR.fingerprint
    whole = replace(parts.whole(dtype="<f8"), schema=schema)
    report = parts.report(
        "pump-5",
        "pumps",
        LIFE,
        7,
        summary=None,
        fingerprint=schema,
        moments=parts.moments(4, 60, sample=False),
        counts=Counts(learnt=60, withheld=2, lost=1, moved=5),
    )
    rows, none = numbers(3.0, 12).reshape(3, 4), np.empty(0)
    held = (
        MeasuredRows(parts.whole(dtype="<f8"), none.reshape(0, 4), none),
        MeasuredRows(None, rows, np.array([0.25, 0.5, 1.0])),
    )
    past = _past("pumps", "pump-5", None)
    finals = tuple(replace(f, measured=m) for f, m in zip(past.finals, held, strict=True))
    both = replace(held[1], whole=whole)  # no client keeps both: every place is filled
    return {
        ("checkpoint",): Checkpoint(report=report, pin=PIN, delivered=31, measured=both),
        ("past",): replace(past, finals=finals),
    }


def with_readings_of_a_named_schema() -> dict[Any, Any]:
    """As the one before, with the text of the open schema."""
    records = with_readings_that_were_measured()
    kept, past = records[("checkpoint",)], records[("past",)]

    def named(checkpoint: Checkpoint) -> Checkpoint:
        measured = replace(checkpoint.measured, schema=OPEN_LINEAR.canonical)
        return replace(checkpoint, measured=measured)

    finals = tuple(map(named, past.finals))
    return {("checkpoint",): named(kept), ("past",): replace(past, finals=finals)}


def while_gamma_is_worked_out() -> dict[Any, Any]:
    """A client that has a sample of readings to tell, and was kept before it met a parent."""
    report = parts.report(
        "press-4",
        "presses",
        LIFE,
        2,
        summary=None,
        pinned=Incarnation(0, 0),
        fingerprint=OPEN_KERNEL.fingerprint,
        moments=parts.moments(8, 40, sample=True),
        counts=Counts(learnt=61, withheld=3, lost=2),
        scores=None,
        alarm_status=parts.alarm_status("press-4", 1),
    )
    return {
        ("checkpoint",): Checkpoint(report=report, pin=None, delivered=0),
        ("past",): Past(),
    }
