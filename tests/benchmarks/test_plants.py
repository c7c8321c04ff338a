"""The generated plants: deterministic, alike but not the same, and truthful about their faults."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from plants.engine_kind import NAMES as ENGINE
from plants.engine_kind import WEAR
from plants.faults import Injected, Where, offsets_of, place_faults
from plants.loop_sensors import COUNT, MEASURED
from plants.loop_sensors import NAMES as LOOP
from plants.plant import PLANTS, plant
from submerge import UsageError

DAYS = {"loop": 2, "engines": 12, "room": 3}
"""Enough to show what they vary by, in a second or so."""

pytestmark = pytest.mark.slow

each_plant = pytest.mark.parametrize("name", PLANTS)


@functools.cache
def made(name, *faults):
    return plant(name, seed=3, nodes=3, days=DAYS[name], faults=faults)


@functools.cache
def read(name, *faults):
    """(nodes, rows, channels), in scales, all that a small fleet reads."""
    fleet = made(name, *faults)
    rows = np.stack([fleet.rows(node, 0, fleet.n_rows) for node in range(fleet.nodes)])
    scaled = (rows - fleet.schema.scaling.offset) / fleet.schema.scaling.scale
    scaled.setflags(write=False)
    return scaled


def differs(name, fault):
    """(nodes, rows, channels), where a fault has changed what is read."""
    spoilt, sound = read(name, fault), read(name)
    return ~((spoilt == sound) | (np.isnan(spoilt) & np.isnan(sound)))


def hours(name, many):
    """Rows in so many hours."""
    return round(many * 3600 / made(name).period_s)


# -- what all of them promise --------------------------------------------------------


@each_plant
def test_rows_do_not_depend_on_how_they_are_read(name):
    """Whatever the chunks, whatever the order, whoever asks in between: bit for bit the same."""
    fleet = plant(name, seed=3, nodes=3, days=DAYS[name], faults=())
    late, n = hours(name, 30), fleet.n_rows
    rows = fleet.rows(2, late, late + 50), fleet.rows(1, 0, 7), fleet.rows(2, 0, n)
    scaled = [(r - fleet.schema.scaling.offset) / fleet.schema.scaling.scale for r in rows]

    expected = read(name)
    for part, at in zip(scaled, [(2, late, 50), (1, 0, 7), (2, 0, n)], strict=True):
        node, start, count = at
        assert np.array_equal(expected[node, start : start + count], part, equal_nan=True)


@each_plant
def test_only_the_seed_decides(name):
    """Another seed is another fleet, and NumPy's global generator is left alone."""
    before = np.random.get_state()[1].copy()  # noqa: NPY002 - it is what is watched
    one, other = (plant(name, seed=seed, nodes=4, days=14) for seed in (1, 2))

    assert one.faults != other.faults
    assert not np.array_equal(one.rows(0, 0, 9), other.rows(0, 0, 9), equal_nan=True)
    assert np.array_equal(before, np.random.get_state()[1])  # noqa: NPY002


@each_plant
def test_a_few_directions_hold_most_of_what_varies(name):
    """About each node's own mean, the leading `rank` directions of all nodes hold nine tenths."""
    rows = read(name)
    centered = np.nan_to_num(rows - np.nanmean(rows, axis=1, keepdims=True))
    energy = np.linalg.svd(centered.reshape(-1, rows.shape[2]), compute_uv=False) ** 2

    assert energy[: made(name).rank].sum() > 0.9 * energy.sum()


@each_plant
def test_every_channel_varies_and_none_runs_away(name):
    """Each channel of each node says something new; scales are about what it varies by."""
    rows = read(name)
    spread = np.nanstd(rows, axis=1)

    assert 0.1 < spread.min()
    assert np.nanmax(np.abs(rows - np.nanmean(rows, axis=1, keepdims=True))) < 100


@each_plant
def test_some_readings_are_missing_and_not_many(name):
    """A reading or a packet gets lost now and then."""
    assert 0 < np.isnan(read(name)).mean() < 0.1


@each_plant
def test_drawn_faults_are_of_every_kind_and_begin_after_the_quiet_days(name):
    """A node each, within the run, on channels that exist."""
    fleet = plant(name, seed=5, nodes=40, days=30)
    first, names = int(10 * 86400 / fleet.period_s), {channel.name for channel in fleet.channels}

    assert {fault.kind for fault in fleet.faults} == set(fleet.kinds)
    assert len({fault.node for fault in fleet.faults}) == len(fleet.faults) >= 20
    assert all(first <= fault.start < fault.end <= fleet.n_rows for fault in fleet.faults)
    assert all(names.issuperset(fault.channels) for fault in fleet.faults)


# -- sensors that are out of order -----------------------------------------------------

PLACES = {
    "loop": "purge/E",
    "engines": "core speed",
}
"""Sensors that nothing acts on, so that what is changed is what is read."""

BEGINS_H = {"loop": 20, "engines": 165}
"""So that faults reach over a page's edge."""

each_sensor = pytest.mark.parametrize("name", PLACES)


def fault_of(name, kind, size=5.0, channels=None):
    """One of node 1, half a day long."""
    right = (PLACES[name],) if channels is None else channels
    start = hours(name, BEGINS_H[name])
    return Injected(1, kind, right, start, start + hours(name, 12), size)


@each_sensor
@pytest.mark.parametrize("kind", ["bias", "drift", "stuck", "noise"])
def test_a_sensor_fault_changes_its_own_readings_in_its_span_and_nothing_else(name, kind):
    """The truth on record is the whole truth."""
    fault = fault_of(name, kind)
    nodes, rows, channels = np.nonzero(differs(name, fault))

    assert set(nodes) == {1}
    assert {made(name).channels[c].name for c in channels} == {PLACES[name]}
    assert fault.start <= rows.min()
    assert rows.max() < fault.end
    assert len(rows) > 0.9 * (fault.end - fault.start)


@each_sensor
def test_sizes_are_in_scales(name):
    """A bias is that far off, a drift that far a day later, noise has that spread."""
    column = [channel.name for channel in made(name).channels].index(PLACES[name])

    def off(kind):
        fault = fault_of(name, kind)
        return (read(name, fault) - read(name))[1, fault.start : fault.end, column]

    days = np.arange(len(off("bias"))) * made(name).period_s / 86400
    assert np.allclose(5.0, off("bias")[~np.isnan(off("bias"))])
    assert np.allclose(off("drift"), 5.0 * days, atol=0.02, equal_nan=True)
    assert np.nanstd(off("noise")) == pytest.approx(5.0, rel=0.3)


@each_sensor
def test_a_stuck_sensor_repeats_one_reading(name):
    """The one that it had when it stuck, on both sides of a page's edge."""
    fault = fault_of(name, "stuck")
    column = [channel.name for channel in made(name).channels].index(PLACES[name])
    said = read(name, fault)[1, fault.start : fault.end, column]
    usual = read(name)[1, :, column]

    assert len(np.unique(said[~np.isnan(said)])) == 1
    assert np.nanmin(np.abs(usual - np.nanmax(said))) < 1e-9


# -- sensors that are the wrong way round: only correlations show it ----------------------

UNITS = {
    "loop": ("purge/A", "purge/B"),
    "engines": ("core speed",),
    "room": ("m2/temperature", "m2/humidity"),
}


def reversed_in(name):
    """One of node 1, half a day long, after two days of readings where there are as many."""
    start = hours(name, {"loop": 30, "engines": 165, "room": 50}[name])
    return Injected(1, "reversed", UNITS[name], start, start + hours(name, 12))


@each_plant
def test_reversed_sensors_change_their_own_readings_in_the_span_and_nothing_else(name):
    """Controllers act on the true reading: the process does not notice."""
    fault = reversed_in(name)
    nodes, rows, channels = np.nonzero(differs(name, fault))

    assert set(nodes) == {1}
    assert {made(name).channels[c].name for c in channels} == set(UNITS[name])
    assert fault.start <= rows.min()
    assert rows.max() < fault.end
    assert np.array_equal(np.isnan(read(name, fault)), np.isnan(read(name)))


@each_plant
def test_reversed_sensors_mirror_their_readings_within_their_own_range(name):
    """No channel leaves the range of the two days before, and each moves the other way."""
    fault = reversed_in(name)
    first = max(0, fault.start - hours(name, 48))
    for channel in UNITS[name]:
        column = [each.name for each in made(name).channels].index(channel)
        sound, spoilt = (rows[1, :, column] for rows in (read(name), read(name, fault)))
        before, inside = sound[first : fault.start], slice(fault.start, fault.end)

        assert np.nanmin(before) - 1e-9 <= np.nanmin(spoilt[inside])
        assert np.nanmax(spoilt[inside]) <= np.nanmax(before) + 1e-9
        mirrored = np.clip(
            2 * np.nanmean(before) - sound[inside], np.nanmin(before), np.nanmax(before)
        )
        assert np.allclose(mirrored, spoilt[inside], equal_nan=True)


@each_plant
def test_drawn_faults_of_other_kinds_are_the_same_with_and_without_reversed_sensors(name):
    """Figures of earlier runs stay comparable; a reversed sensor is at a node without a fault."""
    fleet = plant(name, seed=5, nodes=40, days=30)
    number = sum(fault.kind != "reversed" for fault in fleet.faults)
    others = type(fleet)(seed=5, nodes=40, days=30, n_faults=number).faults

    assert others == tuple(fault for fault in fleet.faults if fault.kind != "reversed")
    assert len(fleet.faults) - number == 4


def test_a_reversed_sensor_needs_readings_before():
    """What its own range is has to come from somewhere."""
    fault = Injected(0, "reversed", ("core speed",), 0, 9)
    with pytest.raises(UsageError, match="needs readings before it, got start 0"):
        made("engines", fault).rows(0, 0, 5)


# -- the loop ------------------------------------------------------------------------


def test_the_loop_has_41_measurements_and_11_valves():
    """52 channels in all, named and with units, in the order of the columns."""
    fleet = made("loop")

    assert (41, 52) == (COUNT, len(fleet.channels))
    assert ("reactor temperature", "°C") == (fleet.channels[8].name, fleet.channels[8].unit)
    assert "reactor cooling valve" == fleet.channels[50].name


def test_controllers_hold_what_they_are_to_hold():
    """Levels, pressure and temperatures stay near their set points; valves are not at a stop."""
    rows = np.nanmean(read("loop"), axis=1)
    fleet = made("loop")
    values = rows * fleet.schema.scaling.scale + fleet.schema.scaling.offset
    for name in ("separator level", "stripper level", "reactor temperature"):
        paper = next(paper for sensor, _, paper, *_ in MEASURED if sensor == name)
        assert np.allclose(paper, values[:, LOOP.index(name)], rtol=0.02)
    assert ((values[:, COUNT:] > 0.1) & (values[:, COUNT:] < 0.9)).all()


def test_analyzers_repeat_themselves_and_flows_do_not():
    """A feed's analyzer says every reading twice, a product's five times, about."""
    rows = read("loop")[0]

    def news(name):
        return np.mean(np.diff(rows[:, LOOP.index(name)]) != 0)

    assert news("purge/E") == pytest.approx(1 / 2, abs=0.02)
    assert news("product/E") == pytest.approx(1 / 5, abs=0.02)
    assert news("feed A") > 0.99


@pytest.mark.parametrize(
    ("kind", "channels", "size", "shows", "up"),
    [
        ("feed", ("reactor feed/B",), 0.05, "reactor feed/B", True),
        ("cooling", ("reactor cooling valve",), 0.2, "reactor cooling valve", True),
        ("cooling", ("reactor cooling valve",), 0.2, "reactor cooling outlet", False),
        ("bias", ("reactor temperature",), 12.0, "reactor cooling valve", True),
    ],
)
def test_what_goes_wrong_in_the_process_goes_on_into_it(kind, channels, size, shows, up):
    """Nothing before it begins; then the channel that it acts on, by more than it ever varies."""
    fault = fault_of("loop", kind, size, channels)
    where = differs("loop", fault)
    column = LOOP.index(shows)
    off = (read("loop", fault) - read("loop"))[1, :, column]

    assert not where[[0, 2]].any()
    assert not where[1, : fault.start].any()
    late = np.nanmedian(off[fault.end - hours("loop", 4) : fault.end])
    assert abs(late) > 1
    assert up == (late > 0)
    # Half a day after it was mended, little is left of it.
    after = fault.end + made("loop").lingers
    assert abs(np.nanmedian(off[after : after + 20])) < 0.3 * abs(late)


def test_a_valve_that_sticks_is_told_to_move_and_does_not():
    """Its command goes further to and fro than that of the same valve in good order."""
    fault = fault_of("loop", "sticking", 0.2, ("steam valve", "stripper temperature"))
    column = LOOP.index("steam valve")
    spoilt, sound = (
        each[1, fault.start : fault.end, column] for each in (read("loop", fault), read("loop"))
    )

    assert np.nanstd(spoilt) > 1.5 * np.nanstd(sound)


# -- the engines ----------------------------------------------------------------------


def test_six_regimes_move_sensors_most():
    """An engine's readings fall into six groups, far apart for what they vary by inside."""
    rows = read("engines")[0]
    settings = np.round(rows[:, :3] - np.nanmin(rows[:, :3], axis=0), -1)
    settings = settings[~np.isnan(rows).any(axis=1)]

    assert len(np.unique(settings, axis=0)) >= 4
    assert np.nanmedian(np.nanstd(rows, axis=0)) > 5


@pytest.mark.parametrize("kind", WEAR)
def test_wear_hardly_shows_at_first_and_then_runs_away(kind):
    """It follows one direction, is a tenth of its size half way, and is gone once overhauled."""
    worst = max(WEAR[kind], key=lambda name: abs(WEAR[kind][name]))
    start = hours("engines", 24)
    fault = Injected(1, kind, (worst,), start, start + hours("engines", 9 * 24), 8.0)
    off = (read("engines", fault) - read("engines"))[1]
    half = (fault.start + fault.end) // 2

    assert {ENGINE[c] for c in np.nonzero(np.nan_to_num(off).any(axis=0))[0]} == set(WEAR[kind])
    assert np.nanmax(np.abs(off[half])) < 0.15 * 8
    assert np.nanmax(np.abs(off[fault.end - 3 : fault.end])) == pytest.approx(8, rel=0.05)
    assert not np.nan_to_num(off[fault.end :]).any()


# -- what is said of bad input -----------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: plant("room2"), "a plant is one of loop, engines, room, got 'room2'"),
        (lambda: made("engines").rows(3, 0, 1), "of nodes 0 to 2, got 0 to 1 of node 3"),
        (lambda: made("engines").rows(0, 5, 4), "got 5 to 4 of node 0"),
        (lambda: Injected(-1, "bias", ("x",), 0, 1), "node must be at least 0, got -1"),
        (lambda: Injected(0, "bias", (), 0, 1), "which channels are right to name, got none"),
        (lambda: Injected(0, "bias", ("x",), 5, 5), "must end after it starts, got 5 to 5"),
        (lambda: made("loop", Injected(0, "rust", ("feed A",), 0, 1)), "must be one of bias"),
        (lambda: made("loop", Injected(7, "bias", ("feed A",), 0, 1)), "node must be below 3"),
        (lambda: made("loop", Injected(0, "bias", ("x",), 0, 1)), "the plant's, got 'x'"),
    ],
)
def test_bad_input_says_what_was_expected(make, said):
    """Whose fault, what was expected, what came."""
    with pytest.raises(UsageError, match=said):
        make()


def test_more_faults_than_nodes_are_refused():
    """A node each."""
    with pytest.raises(UsageError, match="n_faults must be from 0 to 2, a node each, got 3"):
        place_faults(
            np.random.default_rng(0),
            ("bias",),
            lambda *_: (("x",), 1.0, 1.0),
            Where(nodes=2, first=0, last=99, period_s=60.0),
            count=3,
        )


def test_a_fault_adds_nothing_outside_its_span():
    """Half open: the row that it starts with is in, the one that it ends with is not."""
    rows = np.arange(10.0)
    got = offsets_of(Injected(0, "bias", ("x",), 3, 6, 2.0), rows, 60.0, np.zeros(10))

    assert [0, 0, 0, 2, 2, 2, 0, 0, 0, 0] == list(got)
