"""How figures are written for people."""

from __future__ import annotations

import math

import pytest

from submerge_files.console.units import ago, figure, in_words, moment, size_of


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.003, "3 ms"),
        (40.0, "40 s"),
        (119.0, "119 s"),
        (180.0, "3 min"),
        (36 * 3600.0, "36 h"),
        (12 * 86400.0, "12 d"),
    ],
)
def test_a_duration_has_one_unit_and_two_of_it_at_least(seconds, words) -> None:
    """36 hours are not "a day"."""
    assert words == in_words(seconds)
    if seconds >= 1:
        assert words == ago(seconds)


@pytest.mark.parametrize(
    ("size", "words"),
    [(500, "500 Bytes"), (48 << 20, "48 MiB"), (77 << 30, "77 GiB"), (3000, "3 KiB")],
)
def test_a_size_is_in_powers_of_1024(size, words) -> None:
    """As memory and disks are measured by the kernel."""
    assert words == size_of(size)
    assert "2.9 KiB" == size_of(3000, decimals=1)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.0, "1970-01-01 00:00:00 UTC"), (1e300, "at 1e+300 s"), (math.inf, "at inf s")],
)
def test_a_clock_may_say_anything(seconds, words) -> None:
    """A date where there is one."""
    assert words == moment(seconds)


@pytest.mark.parametrize(
    ("value", "words"),
    [(1.114, "1.11"), (-54.42, "-54.4"), (1640.4, "1,640"), (-1e6, "-1e+06"), (0.0, "0")],
)
def test_a_size_has_three_digits_and_an_exponent_only_when_it_is_huge(value, words) -> None:
    """Sizes stand one below the other: 668 and 1.64e+03 do not compare at a glance."""
    assert words == figure(value)
    assert words.startswith("-") or f"+{words}" == figure(value, "+")
