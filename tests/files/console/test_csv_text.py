"""Tables for spreadsheets: names of fields come from devices."""

from __future__ import annotations

import csv
import io
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from submerge_files.console.units import csv_text

FIGURES = ("-1.5", "+3", "-1e-07", "-1,5", "-1.234,5", "-12%", "-inf", "-", "2026-01-01", "a=b", "")


def cells(rows: list[list[object]]) -> list[list[str]]:
    return list(csv.reader(io.StringIO(csv_text(rows))))


@pytest.mark.parametrize(
    "text",
    [
        *(
            "=1+1",
            "@SUM(A1)",
            "+cmd|' /C calc'!A0",
            "-1+2",
            "-a",
            "\t=1",
            " =1",
            '=HYPERLINK("x","y")',
        ),
        *("-1.5=A1", "-,=1", "-\n=1", "=", "+-1"),
    ],
)
def test_a_text_that_a_spreadsheet_would_reckon_with_stays_text(text):
    """Wherever it stands, and whatever stands beside it."""
    assert [["a", f"'{text}", "-1.5"], [f"'{text}", "b", "c"]] == cells(
        [["a", text, -1.5], [text, "b", "c"]]
    )


@pytest.mark.parametrize("text", FIGURES)
def test_figures_stay_figures(text):
    assert [[text, "'=1"], [text, "x"]] == cells([[text, "=1"], [text, "x"]])
    assert [[text, "x"]] == cells([[text, "x"]])


@pytest.mark.parametrize(
    "mark", ["\x1b", "\0", "\x7f", "\x9b", "\u202e", "\u2066", "\u200f", "\u061c"]
)
def test_what_controls_a_terminal_or_turns_a_line_is_shown(mark):
    assert [["a\N{REPLACEMENT CHARACTER}b", "c"]] == cells([[f"a{mark}b", "c"]])


def test_text_of_people_stays_as_it_is():
    rows = [["Außen\N{NO-BREAK SPACE}1", "two\nlines", "\N{DEGREE SIGN}C", "\u6e29\u5ea6"]]
    assert rows == cells(rows)


@given(st.lists(st.text(st.sampled_from('a1 =@+-,."\n\t:/%eé_'), max_size=6), min_size=1))
@example(["-1+2", "-1.5e-07", "", "x,y", "two\nlines", 'a"b'])
def test_a_cell_that_is_no_formula_is_what_a_reader_of_csv_gets(texts):
    (found,) = cells([texts])
    formula = re.compile(r"\s*(?:[=@]|[-+](?![\d.,]*(?:e[-+]?\d+)?%?\s*\Z))")
    assert found == [f"'{text}" if formula.match(text) else text for text in texts]
