"""What honest nodes say of alarms and are wanted to do, drawn; and some of it written out."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, get_args

import numpy as np
from hypothesis import strategies as st

from submerge.client.alarms.blocks import KeptBlocks
from submerge.client.alarms.detector import DetectorState, SilentChannels
from submerge.client.monitor_state import MonitorState
from submerge.pca.own_scatter import OwnScatter
from submerge.protocol.alarm_status import (
    MOST_ALARMS,
    REMEMBERED,
    STATES,
    TOP,
    Alarm,
    AlarmStatus,
    Awaited,
    Cause,
    Deviation,
    Looks,
    TypicalAlarms,
    Verdict,
    Waiting,
)
from submerge.protocol.desired_state import MOST_AT_ONCE, MOST_VERDICTS, DesiredState
from submerge.stats.block_length import LONGEST
from submerge.stats.block_maxima import BlockMaxima
from submerge.stats.departures import Departures
from submerge.stats.duty import DutyCycles
from submerge.stats.node_mean import OwnMean
from submerge.stats.quantile_sketch import FINE, QuantileSketch, empty
from submerge.stats.residual_scale import ResidualScale
from submerge.stats.resolution import Resolution
from submerge.stats.statistic import KINDS
from submerge.stats.stuck import Habits, RunLengths
from support.edges import clients, names, numbers, positive, readings, scores_seen, versions

# -- drawn --------------------------------------------------------------------------

times = st.floats(0, 253_402_300_799)
sums = st.floats(0, 2.0**62)
channels = st.text(st.characters(categories=["L", "N", "P"], max_codepoint=0x7FF), max_size=40)

plain_alarms = st.builds(
    Alarm,
    names,
    numbers,
    times,
    times,
    st.just(0.0) | times,
    positive,
    st.sampled_from(get_args(Cause)),
    st.lists(st.tuples(channels, st.floats(0, 1)), max_size=TOP).map(tuple),
    versions,
    readings,
    st.sampled_from(get_args(Verdict)),
)

short = st.text(
    st.characters(categories=["L", "N", "P"], max_codepoint=0x7F), min_size=1, max_size=6
)
values = st.floats(-1e100, 1e100)
shares = st.lists(st.tuples(short, st.floats(0, 1)), max_size=TOP).map(tuple)
newer_alarms = st.builds(
    lambda alarm, *newer: replace(
        alarm,
        top=newer[0],
        first=newer[1],
        deviations=newer[2],
        settled=newer[3],
        provisional=newer[4],
        looks=newer[5],
    ),
    plain_alarms,
    shares,
    shares,
    st.lists(st.builds(Deviation, short, values, values), max_size=TOP).map(tuple),
    st.booleans(),
    st.booleans(),
    st.none()
    | st.builds(Looks, st.sampled_from(("sensor", "process")), numbers, positive, st.booleans()),
)
"""With names short enough for all that an alarm says."""

alarms = plain_alarms | newer_alarms

alarm_statuses = st.builds(
    AlarmStatus,
    st.tuples(*(clients for _ in STATES)),
    st.lists(alarms, max_size=5).map(tuple),
    clients,
    sums,
    sums,
    numbers,
    numbers,
    st.just(-1.0) | sums,
    numbers,
    provisional_rows=sums,
    waiting=st.none() | st.builds(Waiting, st.sampled_from(get_args(Awaited)), numbers, numbers),
)

fine = scores_seen.map(lambda values: QuantileSketch.of(values, FINE)) | st.integers(0, 2**16).map(
    lambda seed: QuantileSketch.of(np.random.default_rng(seed).lognormal(1, 2, 1000), FINE)
)
hours_maxima = st.builds(BlockMaxima, fine, fine, fine, numbers, fine)
maxima = hours_maxima | st.builds(
    lambda hourly, i, lengths: replace(hourly, block_s=2.0**i, lengths=lengths),
    hours_maxima,
    st.integers(0, LONGEST),
    st.just(()) | st.integers(0, LONGEST).map(lambda i: (*i * (0,), 1)),
)

verdicts = st.lists(st.tuples(numbers, st.booleans()), max_size=MOST_VERDICTS).map(tuple)
desired_states = st.builds(DesiredState, names, numbers, st.none() | st.booleans(), verdicts)
several_wishes = st.lists(desired_states, max_size=MOST_AT_ONCE).map(tuple)


@st.composite
def own_vigils(draw: Any, node: str) -> AlarmStatus:
    """One client's: of itself, and of its own alarms."""
    reported = draw(st.lists(alarms, max_size=1 + REMEMBERED))
    state = draw(st.none() | st.sampled_from(STATES))
    return replace(
        draw(alarm_statuses),
        states=(0,) * len(STATES) if state is None else AlarmStatus.at(state),
        alarms=tuple(replace(alarm, node=node) for alarm in reported),
        open=draw(st.integers(0, len(reported))),
    )


def _arrays(size: int, least: float = -1e300) -> st.SearchStrategy[np.ndarray]:
    """So many numbers."""
    return st.lists(st.floats(least, 1e300), min_size=size, max_size=size).map(np.array)


def own_means(width: int, dim: int | None) -> st.SearchStrategy[OwnMean]:
    """Of so many channels, and features if there are any."""
    features = st.none() if dim is None else _arrays(dim)
    return st.builds(OwnMean, _arrays(width), features, positive, numbers, positive)


def columns(known: Any) -> st.SearchStrategy[Any]:
    """Habits or repeats of as many channels as these have, from nothing known to the most."""
    drawn = []
    for array in known:
        values: st.SearchStrategy[Any] = st.floats(0, 1e300)
        if array.dtype != np.float64:
            values = st.booleans() if array.dtype == np.bool_ else readings
        elif np.isnan(array).all():
            values |= st.just(np.nan)
        lists = st.lists(values, min_size=len(array), max_size=len(array))
        drawn.append(lists.map(partial(np.array, dtype=array.dtype)))
    return st.tuples(*drawn).map(type(known)._make)


_levels = st.dictionaries(st.sampled_from(KINDS), positive)
_windows = st.dictionaries(st.sampled_from(KINDS), st.tuples(fine, fine), max_size=2)
hours = st.builds(KeptBlocks, _windows, numbers, _levels, positive, positive)


def watched(width: int) -> st.SearchStrategy[DetectorState]:
    """What a sentry remembers, from nothing to all that it can."""
    return st.builds(
        DetectorState,
        st.lists(alarms, max_size=1 + REMEMBERED).map(tuple),
        positive,
        _levels,
        st.just(np.zeros(0)) | _arrays(width, 0.0),
        st.lists(st.integers(0, 2**20), max_size=5).map(tuple),
        numbers,
        numbers,
        hours,
    )


@st.composite
def monitors(draw: Any, models: st.SearchStrategy[Any]) -> MonitorState:
    """What a client's next process looks with; `models`: that know something."""
    model, width, dim = draw(models), draw(st.integers(1, 5)), draw(st.none() | st.integers(1, 5))
    holds = draw(st.booleans())
    mean = st.none() | own_means(width, dim)
    squares = _arrays(width, 0.0)
    own = squares.map(lambda a: replace(OwnScatter.none(width), sums=np.diag(a), weight=7.0))
    return MonitorState(
        model.fingerprint,
        draw(mean),
        draw(watched(width)),
        draw(desired_states),
        reference=model if holds else None,
        held=draw(mean) if holds else None,
        run_lengths=draw(st.none() | columns(RunLengths.none(width))),
        habits=draw(st.none() | columns(Habits.none(width))),
        residual_scale=draw(st.none() | st.builds(ResidualScale, squares, squares, positive)),
        resolution=draw(st.none() | columns(Resolution.none(width))),
        scatter=draw(st.none() | own),
        silences=draw(st.none() | columns(SilentChannels.none(width))),
        unsure=draw(st.none() | squares),
        duty=draw(st.none() | columns(DutyCycles.none(width))),
        departures=draw(st.none() | columns(Departures.none(width))),
    )


# -- written out --------------------------------------------------------------------

FINELY = QuantileSketch.of(np.geomspace(0.5, 2.0, 40), FINE)

ALARM = Alarm(
    "press-3",
    0x19AA41F2C30,
    1_763_800_000.5,
    1_763_800_060.5,
    0.0,
    3.25,
    "t2",
    (("bearing heat", 0.5), ("flow", 0.25), ("läuft", 0.125)),
    1_700_000_000_123,
    60,
)
OVER = replace(ALARM, number=7, ended=1_763_800_120.5, verdict="rejected")
ALARM_STATUS = AlarmStatus(AlarmStatus.at("alarm"), (ALARM, OVER), 1, 86_400.0, 0.125, 3, 1, 0.0, 9)
MAXIMA = BlockMaxima(FINELY, FINELY, empty(FINE), 720, FINELY)
OF_READINGS = replace(MAXIMA, linear=QuantileSketch.of(np.geomspace(1e-3, 4.0, 40), FINE))
WISH = DesiredState("press-3", 12, True, ((7, False), (0x19AA41F2C30, True)))


def _known(before: Any) -> Any:
    """Habits or repeats after some rows; one channel was never heard."""
    after = (np.arange(len(array)).astype(array.dtype) for array in before)
    return type(before)._make(
        np.where(np.isnan(old) & (new == 0), old, new).astype(old.dtype)
        for old, new in zip(before, after, strict=True)
    )


def monitor_of(model: Any, channels: int = 6) -> MonitorState:
    """What a client remembers while an alarm is open that this model has raised."""
    ones = np.ones(channels)
    mean = OwnMean(ones, None, 40.0, 40, 3600.0)
    hours = KeptBlocks({"spe": (FINELY, FINELY)}, 720, {"t2": 1.5}, 86_400.0, 0.125)
    watched = DetectorState((ALARM, OVER), 3600.0, {"spe": 2.5}, ones / channels, (1,), 3, 1, hours)
    return MonitorState(
        model.fingerprint,
        mean,
        watched,
        WISH,
        reference=model,
        held=mean,
        run_lengths=_known(RunLengths.none(channels)),
        habits=_known(Habits.none(channels)),
        residual_scale=ResidualScale(ones, ones, 3600.0),
    )


def most_alarms(node: str, n: int) -> tuple[Alarm, ...]:
    """So many alarms, each as large as can be: 481 bytes."""
    top = tuple((letter * 30, 0.3) for letter in "\U0001f600\U0001f601\U0001f602")
    alarm = Alarm(node, 2**62, 1.1, 1.1, 1.1, 1.1, "stuck", top, 2**63 - 1, 2**53, "rejected")
    alarm = replace(alarm, settled=True, provisional=True)
    return tuple(replace(alarm, number=2**62 - i) for i in range(n))


def most_peaks(count: int, *, linear: bool, above: bool) -> BlockMaxima:
    """As many buckets as there can be, far apart, of so many scores; `above`: of many nodes."""
    bins = tuple((-28_000 + 350 * i, count // FINE.bins) for i in range(FINE.bins))
    sketch = QuantileSketch(FINE.level, bins, FINE)
    third = sketch if linear else empty(FINE)
    lengths = (2**40 if above else 0,) * LONGEST + (2**40 if above else 1,)
    rest = sketch, sketch, sketch, 2.0**LONGEST, lengths
    return BlockMaxima(sketch, sketch, third, 2**62, *rest)


def most_vigil(node: str, *, above: bool) -> AlarmStatus:
    """The largest that there is; `above`: of an aggregator."""
    states = (2**40,) * len(STATES) if above else AlarmStatus.at("alarm")
    reported = most_alarms(node, MOST_ALARMS if above else 1 + REMEMBERED)
    opened = 2**40 if above else len(reported)
    status = AlarmStatus(states, reported, opened, 1.1, 1.1, 2**62, 2**62, 1.1, 2**62)
    status = replace(status, provisional_rows=1.1)
    if above:
        typical = TypicalAlarms(1.1, 2**62, 2**40)
        return replace(status, silent=((node, 2**40),), typical=typical)
    return replace(status, waiting=Waiting("report", 2**62, 2**62))
