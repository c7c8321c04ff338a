"""Conditions: an operating state in words, and the rows that are in it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge import UsageError
from submerge.condition import COMPARED, Condition, Relation, UnknownChannel

NAMES = ("rpm", "load", "motor temp", "rpm-1", "load-1", "motor temp-1")

words = st.text(min_size=1, max_size=8).filter(lambda text: text.encode(errors="replace") != b"?")
numbers = st.floats(allow_nan=False, allow_infinity=False)
signs = st.sampled_from(list(COMPARED))


@st.composite
def conditions(draw) -> tuple[Condition, tuple[str, ...]]:
    """A condition, and the names that it is of."""
    names = tuple(draw(st.lists(words, min_size=1, max_size=5, unique=True)))
    columns = draw(st.lists(st.integers(0, len(names) - 1), min_size=1, max_size=4))
    comparisons = [
        Relation(names[column], column, draw(signs), draw(numbers) + 0.0) for column in columns
    ]
    return Condition(tuple(comparisons)), names


@given(conditions())
def test_a_condition_that_is_written_reads_back(made):
    """Whatever channels are called, and to the last bit of each number."""
    condition, names = made

    assert condition == Condition.parse(str(condition), names)


@given(st.text(alphabet=' "\\<>=!and.0159e+-rpmload', max_size=30))
def test_a_text_is_a_condition_or_a_usage_error(text):
    """Only such errors are raised, and a parsed condition is the same when written."""
    try:
        read = Condition.parse(text, NAMES)
    except UsageError:
        return
    assert read == Condition.parse(str(read), NAMES)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("rpm>50", "rpm > 50"),
        ("  rpm  >=  .5 and load<-1e3 ", "rpm >= 0.5 and load < -1000"),
        ('"motor temp" != 20.25', '"motor temp" != 20.25'),
        ('"rpm" == -0', "rpm == 0"),
        ("rpm-1 <= +5.", "rpm-1 <= 5"),
        ("rpm > 50 and rpm < 90", "rpm > 50 and rpm < 90"),
    ],
)
def test_however_it_is_spaced_it_is_written_in_one_way(text, written):
    """Quotes where a name needs them, and no more digits than a number has."""
    assert written == str(Condition.parse(text, NAMES))


def test_a_channel_may_be_called_as_the_word_that_joins():
    """What comes first in a comparison is a name."""
    read = Condition.parse('and > 1 and "and" < 3', ("and",))

    assert '"and" > 1 and "and" < 3' == str(read)


@given(conditions(), st.integers(0, 2**32 - 1))
def test_it_holds_where_every_comparison_does(made, seed):
    """Row by row, as Python itself compares; a gap is compared with nothing."""
    condition, names = made
    rng = np.random.default_rng(seed)
    edges = [comparison.number for comparison in condition.comparisons]
    rows = rng.choice([*edges, 0.0, 1.0, np.nan, np.inf, -np.inf], size=(20, len(names)))
    expected = [
        all(
            not np.isnan(row[one.column])
            and {
                "<": row[one.column] < one.number,
                "<=": row[one.column] <= one.number,
                ">": row[one.column] > one.number,
                ">=": row[one.column] >= one.number,
                "==": row[one.column] == one.number,
                "!=": row[one.column] != one.number,
            }[one.sign]
            for one in condition.comparisons
        )
        for row in rows
    ]

    assert expected == condition.holds(rows).tolist()


@pytest.mark.parametrize("sign", list(COMPARED))
def test_a_gap_fulfills_nothing(sign):
    """Not even "differs from 5"."""
    assert [False] == Condition.parse(f"rpm {sign} 5", NAMES).holds(
        np.full((1, 6), np.nan)
    ).tolist()


def test_a_gap_elsewhere_does_not_matter():
    """Only in a channel that is named."""
    rows = np.full((1, 6), np.nan)
    rows[0, 0] = 60.0

    assert [True] == Condition.parse("rpm > 50", NAMES).holds(rows).tolist()


def test_with_lags_a_plain_name_is_the_newest_reading():
    """It stands first in a row; the one before has its own name."""
    rows = np.array([[60.0, 0.0, 0.0, 40.0, 0.0, 0.0], [40.0, 0.0, 0.0, 60.0, 0.0, 0.0]])

    assert [True, False] == Condition.parse("rpm > 50", NAMES).holds(rows).tolist()
    assert [False, True] == Condition.parse("rpm-1 > 50", NAMES).holds(rows).tolist()


def test_no_rows_are_no_answers():
    """An empty block has an empty mask."""
    mask = Condition.parse("rpm > 50", NAMES).holds(np.empty((0, 6)))

    assert ((0,), np.dtype(bool)) == (mask.shape, mask.dtype)


def test_rows_without_its_channels_are_refused():
    """They are other rows than it was parsed for."""
    with pytest.raises(UsageError, match=r"\(n, 2 or more\), got \(3, 1\)"):
        Condition.parse("load > 50", NAMES).holds(np.zeros((3, 1)))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", 'expected a condition such as "rpm > 50", got none'),
        (" \t", 'expected a condition such as "rpm > 50", got none'),
        ("rpm", "expected one of < <= > >= == != after rpm, got nothing"),
        ("rpm = 5", 'expected one of < <= > >= == != after rpm, got "="; did you mean ==?'),
        ("rpm => 5", 'expected one of < <= > >= == != after rpm, got "=>"; did you mean >=?'),
        ("rpm >> 5", 'expected one of < <= > >= == != after rpm, got ">>"'),
        (
            "motor temp > 5",
            (
                'expected one of < <= > >= == != after motor, got "temp";'
                " a name with blanks in it stands in double quotes"
            ),
        ),
        ("rpm >", "expected a number after rpm >, got nothing"),
        ("rpm > and load > 1", 'expected a number after rpm >, got "and"'),
        ("rpm > nan", 'expected a number after rpm >, got "nan"'),
        ("rpm > 1e999", 'expected a number after rpm >, got "1e999"'),
        ("rpm > 1_000", 'expected a number after rpm >, got "1_000"'),
        ("rpm > 50 %", 'expected "and" or the end after rpm > 50, got "%"'),
        ("rpm > 5 or load > 1", 'expected "and" or the end after rpm > 5, got "or"'),
        ("rpm > 5 and", "expected a channel's name, got nothing"),
        ("> 5", 'expected a channel\'s name, got ">"'),
        ("50 < rpm", 'expected a channel\'s name, got "50"'),
        ("rpn > 5", 'expected a channel\'s name, got "rpn"'),
        ('"rpm > 5', 'expected a name between double quotes, got "rpm > 5'),
    ],
)
def test_what_is_no_condition_is_one_line(text, message):
    """What was expected, and what came."""
    with pytest.raises(UsageError) as error:
        Condition.parse(text, NAMES)

    assert message == str(error.value)


def test_who_names_no_channel_is_told_apart():
    """So that a caller can suggest what was meant."""
    with pytest.raises(UnknownChannel) as error:
        Condition.parse("rpn > 5", NAMES)

    assert ("rpn", NAMES) == (error.value.name, error.value.known)


def test_a_condition_has_something_in_it():
    """None at all would hold of every row."""
    with pytest.raises(UsageError, match="got none"):
        Condition(())
