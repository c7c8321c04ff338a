"""The generated room: deterministic, plausible, and truthful about its faults."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from submerge import UsageError
from submerge_lab.plants.room import DAY, MOTES, QUANTITIES, SNAPSHOT_S, Fault, Room
from submerge_lab.plants.room_faults import FLAT, KINDS

TEMPERATURE, HUMIDITY, LIGHT, VOLTAGE = range(4)


def by_mote(readings):
    """(n, motes, quantities)."""
    return readings.reshape(len(readings), MOTES, len(QUANTITIES))


def hours(first, last, *, day=0):
    """Snapshots between two hours of a day."""
    return slice(*(round((day + hour / 24) * DAY) for hour in (first, last)))


@functools.cache
def two_pages(*faults):
    """A room that is read in two pages, by mote."""
    room = Room(seed=5, days=0.9, faults=faults)
    return by_mote(room.readings(0, room.n_snapshots))


@pytest.fixture(scope="module")
def sound():
    """Three working days of a room in good order, by mote."""
    room = Room(seed=3, days=3, faults=())
    return by_mote(room.readings(0, room.n_snapshots))


# -- what it promises ------------------------------------------------------------


@pytest.mark.parametrize("chunk", [1000, 2048, 999_999])
def test_readings_do_not_depend_on_the_chunk(chunk):
    """However the stream is cut, it is the same stream, bit for bit."""
    room = Room(seed=7, days=1)
    expected = room.readings(0, room.n_snapshots)

    parts = list(Room(seed=7, days=1).stream(chunk))

    assert np.array_equal(expected, np.concatenate(parts), equal_nan=True)


def test_any_snapshots_can_be_read_in_any_order():
    """A later stretch read first is the stretch that the stream would have come to."""
    room = Room(seed=7, days=1, quiet_days=0.2)
    late = room.readings(2000, 2100)
    whole = np.concatenate(list(room.stream(700)))

    assert np.array_equal(whole[2000:2100], late, equal_nan=True)


def test_another_seed_is_another_room():
    """Nothing but the seed decides: other motes, other weather, other faults."""
    one, other = Room(seed=1, days=3), Room(seed=2, days=3)

    assert not np.array_equal(one.plan.positions, other.plan.positions)
    assert one.faults != other.faults
    assert not np.array_equal(one.readings(0, 9), other.readings(0, 9))


def test_global_randomness_is_left_alone():
    """Generating a room neither draws from nor seeds NumPy's global generator."""
    before = np.random.get_state()[1].copy()  # noqa: NPY002 - it is what is watched
    Room(seed=1, days=0.1).readings(0, 100)

    assert np.array_equal(before, np.random.get_state()[1])  # noqa: NPY002


def test_channels_name_mote_quantity_and_unit():
    """54 motes, four quantities each, in the order of the columns."""
    room = Room(seed=0, days=0.1)

    assert len(room.channels) == 216 == room.readings(0, 1).shape[1]
    assert [(c.name, c.unit) for c in room.channels[24:28]] == [
        ("mote07.temperature", "°C"),
        ("mote07.humidity", "%"),
        ("mote07.light", "lux"),
        ("mote07.voltage", "V"),
    ]


def test_a_day_is_a_snapshot_every_31_seconds():
    """2787 whole snapshots a day, and a day and a half is half as many again."""
    assert Room(days=1).n_snapshots == 2787
    assert Room(days=1.5).n_snapshots == 4180


@pytest.mark.parametrize("seed", range(5))
def test_motes_hang_apart_inside_the_hall(seed):
    """40 x 31 m, and no two motes within a meter."""
    positions = Room(seed=seed, days=0.1).plan.positions
    quarantined = np.hypot(*(positions[:, None] - positions).T) + 9 * np.eye(MOTES)

    assert positions.min() >= 0
    assert (positions <= [40, 31]).all()
    assert quarantined.min() > 1


# -- whether one could believe it --------------------------------------------------


def test_days_are_warmer_than_nights_by_a_few_degrees(sound):
    """Every mote swings by 1.5 to 15 °C a day, about a mean that people can work in."""
    celsius = sound[hours(0, 24, day=1), :, TEMPERATURE]
    swing = np.nanmax(celsius, axis=0) - np.nanmin(celsius, axis=0)

    assert 1.5 < swing.min()
    assert swing.max() < 15
    assert 18 < np.nanmean(celsius) < 26
    warmer = np.nanmean(sound[hours(12, 16), :, TEMPERATURE], axis=0)
    assert (warmer > np.nanmean(sound[hours(2, 6), :, TEMPERATURE], axis=0)).all()


def test_humidity_falls_as_temperature_rises(sound):
    """Warm air holds more water: every mote's two series are anticorrelated."""
    for mote in range(MOTES):
        pair = sound[:, mote, :2]
        pair = pair[~np.isnan(pair).any(axis=1)]
        assert np.corrcoef(pair.T)[0, 1] < -0.3


def test_nights_are_dark_and_working_hours_bright(sound):
    """Nothing but noise at three in the morning; lamps at eleven, everywhere."""
    assert np.nanmax(sound[hours(2, 4, day=1), :, LIGHT]) < 30
    assert np.nanmedian(sound[hours(10, 12, day=1), :, LIGHT], axis=0).min() > 100


def test_windows_are_on_one_side():
    """At noon the row of motes at the glass sees more than the row at the far wall."""
    room = Room(seed=3, days=0.6, faults=())
    noon = by_mote(room.readings(0, room.n_snapshots))[hours(11, 13), :, LIGHT]
    bright = np.nanmean(noon, axis=0)
    deep = np.argsort(room.plan.positions[:, 1])

    assert bright[deep[:9]].mean() > bright[deep[-9:]].mean() + 100


def test_weekends_are_quieter_than_weekdays():
    """Nobody comes on most of a Sunday: less light than on the Tuesday before."""
    room = Room(seed=4, days=7, faults=())
    tuesday, sunday = (
        by_mote(room.readings(at.start, at.stop))[:, :, LIGHT]
        for at in (hours(9, 17, day=1), hours(9, 17, day=6))
    )
    far = room.plan.positions[:, 1] > 15

    assert np.nanmean(sunday[:, far]) < 0.5 * np.nanmean(tuesday[:, far])


def test_batteries_run_down_and_follow_the_temperature(sound):
    """Each mote loses 3 to 20 mV a day, and reads a little more when it is warm."""
    t = np.arange(len(sound)) / DAY
    for mote in range(MOTES):
        here = ~np.isnan(sound[:, mote, VOLTAGE])
        volts, celsius = sound[here, mote, VOLTAGE], sound[here, mote, TEMPERATURE]
        basis = np.stack([t[here], celsius - celsius.mean(), np.ones(here.sum())], axis=1)
        a_day, a_degree, _ = np.linalg.lstsq(basis, volts, rcond=None)[0]
        assert -0.020 < a_day < -0.003
        assert 0.001 < a_degree < 0.006


def test_a_silent_mote_is_silent_altogether(sound):
    """A lost packet takes all four readings along; 1 to 10 % are lost, by every mote some."""
    lost = np.isnan(sound)

    assert (lost.any(axis=2) == lost.all(axis=2)).all()
    assert 0.01 < lost.mean() < 0.10
    assert lost.any(axis=(0, 2)).all()


def test_readings_stay_within_what_a_mote_can_say(sound):
    """Berkeley's ceilings: 122.15 °C, 100 %, 1847.36 lux."""
    assert (np.nanmax(sound, axis=(0, 1)) <= [122.15, 100.0, 1847.5, 3.3]).all()
    assert (np.nanmin(sound, axis=(0, 1)) >= [-40.0, -4.0, 0.0, 0.0]).all()


# -- its faults, and what is said of them -------------------------------------------


@pytest.mark.parametrize(
    "fault",
    [
        Fault(7, "temperature", "stuck", 1500, 2500),
        Fault(7, "temperature", "drift", 1500, 2500, 6.0),
        Fault(7, "humidity", "noise", 1500, 2500, 4.0),
        Fault(7, "voltage", "offset", 1500, 2500, -0.1),
        Fault(7, "temperature", "dying", 1500, 2500),
    ],
    ids=lambda fault: fault.kind,
)
def test_a_fault_changes_its_own_channels_in_its_own_span_and_nothing_else(fault):
    """The truth on record is the whole truth, across a page's edge too."""
    bad, sound = two_pages(fault), two_pages()
    differs = ~((bad == sound) | (np.isnan(bad) & np.isnan(sound)))

    rows, motes, quantities = np.nonzero(differs)
    assert set(motes) == {fault.mote - 1}
    assert {QUANTITIES[q] for q in quantities} == set(fault.quantities)
    assert fault.start <= rows.min()
    assert rows.max() < fault.end
    # Nearly every reading is touched; not the odd one that was lost or stuck at the truth.
    assert differs[fault.start : fault.end].any(axis=(1, 2)).mean() > 0.85


def test_a_stuck_sensor_repeats_one_reading():
    """One value, which it could have had when it stuck, on both sides of a page's edge."""
    bad, sound = two_pages(Fault(3, "light", "stuck", 1100, 2400)), two_pages()
    values = bad[1100:2400, 2, LIGHT]

    assert len(np.unique(values[~np.isnan(values)])) == 1
    assert abs(np.nanmax(values) - np.nanmedian(sound[1090:1110, 2, LIGHT])) < 60


def test_drift_grows_by_its_size_a_day():
    """Half a day after it began it is off by half of `size`."""
    bad, sound = two_pages(Fault(3, "humidity", "drift", 500, 2400, -12.0)), two_pages()
    off = bad[:, 2, HUMIDITY] - sound[:, 2, HUMIDITY]
    after = 500 + round(DAY / 2) + np.arange(-20, 20)

    assert np.nanmean(off[after]) == pytest.approx(-6.0, abs=0.1)


def test_noise_has_its_size_and_an_offset_its_own():
    """`size` is a standard deviation for the one, a distance for the other."""
    noise = Fault(3, "temperature", "noise", 500, 2500, 2.0)
    offset = Fault(9, "temperature", "offset", 500, 2500, 4.0)
    bad, sound = two_pages(noise, offset), two_pages()
    added = (bad - sound)[500:2500, :, TEMPERATURE]

    assert np.nanstd(added[:, 2]) == pytest.approx(2.0, rel=0.1)
    assert np.nanmean(added[:, 8]) == pytest.approx(4.0, abs=0.01)


def test_a_dying_mote_reads_122_degrees():
    """As the Berkeley motes did: the voltage goes, then the temperature runs away."""
    bad, sound = two_pages(Fault(3, "temperature", "dying", 1000, 2500)), two_pages()
    last = bad[2400:2500, 2]

    assert [FLAT[q] for q in ("temperature", "humidity", "voltage")] == list(
        np.nanmedian(last[:, [TEMPERATURE, HUMIDITY, VOLTAGE]], axis=0)
    )
    early = slice(1000, 1000 + round(3600 / SNAPSHOT_S)), 2, TEMPERATURE
    assert np.nanmean(bad[early]) < np.nanmean(sound[early]) + 6


@pytest.mark.parametrize("seed", range(8))
def test_drawn_faults_begin_after_the_quiet_days(seed):
    """One mote each, every kind among six, all within the run."""
    room = Room(seed=seed, days=14, quiet_days=4)

    assert len({fault.mote for fault in room.faults}) == 6
    assert {fault.kind for fault in room.faults} == set(KINDS)
    assert all(fault.start >= int(4 * DAY) for fault in room.faults)
    assert all(fault.end <= room.n_snapshots for fault in room.faults)
    assert sorted(room.faults, key=lambda fault: fault.start) == list(room.faults)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Room(seed=-1), "seed must be at least 0, got -1"),
        (lambda: Room(days=0), "days must be above 0"),
        (lambda: Room(n_faults=55), "n_faults must be from 0 to 54, got 55"),
        (lambda: Room(days=0.1).readings(0, 9999), "snapshots must lie in 0 to 278"),
        (lambda: next(Room(days=0.1).stream(0)), "a chunk must be at least one snapshot, got 0"),
        (lambda: Fault(55, "light", "stuck", 0, 1), "mote must be from 1 to 54, got 55"),
        (lambda: Fault(1, "light", "dying", 0, 1), "is of temperature, got 'light'"),
        (lambda: Fault(1, "light", "stuck", 5, 5), "must end after it starts, got 5 to 5"),
    ],
)
def test_bad_input_says_what_was_expected(make, said):
    """Whose fault, what was expected, what came."""
    with pytest.raises(UsageError, match=said):
        make()
