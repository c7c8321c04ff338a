"""How long it takes until enough rows have been measured."""

from __future__ import annotations

from submerge_operate.up.line import MeasuringPace


def test_the_time_left_is_that_of_the_present_rate():
    """Not of the rate of an hour ago; and nothing is said while no row comes."""
    pace = MeasuringPace()
    assert -1.0 == pace.left_s(0, 1000, 0.0)
    pace.take(0, 0.0)
    assert -1.0 == pace.left_s(0, 1000, 4.0)
    assert 995.0 == pace.left_s(5, 1000, 5.0)
    for second in range(400):
        pace.take(10, float(second))
    for second in range(400, 800):
        pace.take(10 + 2 * (second - 400), float(second))
    assert 50.0 == pace.left_s(810, 910, 800.0)
    assert 0.0 == pace.left_s(910, 910, 801.0)


def test_rows_that_come_seldom_have_a_rate_too():
    """Where a row comes every ten minutes, five minutes say nothing."""
    pace = MeasuringPace(600.0)
    for second in range(0, 6001, 5):
        pace.take(second // 600, float(second))
    assert 600.0 * 990 == pace.left_s(10, 1000, 6000.0)


def test_other_channels_begin_again():
    pace = MeasuringPace()
    pace.take(900, 0.0)
    pace.take(0, 10.0)
    assert 90.0 == pace.left_s(10, 100, 20.0)
