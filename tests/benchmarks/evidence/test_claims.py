"""Claims: how cells are picked, who wins, and that no rival is lost in silence."""

from __future__ import annotations

import dataclasses

import pytest

from evidence.claim import Claim, Pick, shown

TABLE = {
    "title": "Rank 10, calls of 50 rows",
    "columns": {"stream": "", "method": "", "error": ".2f", "kB": "d"},
    "rows": [
        ["Light", "ours", 1.0, 85],
        ["", "a rival", 1.5, 20],
        ["", "a large rival", 0.8, 900],
        ["", "one that failed", None, 10],
        ["Synth", "ours", 2.0, 85],
    ],
}
RECORDS = {"made": {"quick": False, "tables": [TABLE]}}


def pick(column: str = "error", stream: str = "Light", **options: object) -> Pick:
    where = {"stream": stream, "method": "ours"}
    return Pick("made", "Rank 10", column, where, "ours", **options)


def rivals(**options: object) -> Pick:
    return Pick(
        "made", "Rank 10", "error", {"stream": "Light"}, "{method}", but=("ours",), **options
    )


CLAIM = Claim("accuracy", "error", "the error", ".2f", "less", pick(), (rivals(),))


def test_the_best_of_all_peers_is_the_peer():
    """An empty first cell is that of the row above; a cell without a figure is no peer."""
    found = shown(CLAIM, RECORDS)

    assert ("a large rival", 0.8) == (found.peer, found.theirs)
    assert "**the rival wins**" == found.verdict
    assert 0.8 == found.ratio


def test_peers_may_be_held_to_what_ours_holds():
    """With no more memory than ours another rival is the best."""
    found = shown(dataclasses.replace(CLAIM, peers=(rivals(within=pick("kB")),)), RECORDS)

    assert ("a rival", "ours", 1.5) == (found.peer, found.verdict, found.ratio)


def test_where_no_peer_is_within_the_page_says_so():
    """It is no win by a ratio."""
    alone = dataclasses.replace(CLAIM, ours=pick("kB"), peers=(rivals(within=pick("kB", "Synth")),))
    small = ("a rival", "one that failed")
    table = TABLE | {"rows": [row for row in TABLE["rows"] if row[1] not in small]}
    found = shown(alone, {"made": {"quick": False, "tables": [table]}})

    assert ("-", None, None, "") == (found.peer, found.theirs, found.ratio, found.verdict)


def test_more_may_be_better():
    """The same figures, the other way."""
    found = shown(dataclasses.replace(CLAIM, better="more"), RECORDS)

    assert ("a rival", "**the rival wins**") == (found.peer, found.verdict)
    assert 1 / 1.5 == pytest.approx(found.ratio)


@pytest.mark.parametrize(
    ("asked", "verdict", "ratio"), [(2.0, "kept", 2.0), (0.5, "**not kept**", 0.5)]
)
def test_what_is_asked_stands_in_for_a_peer(asked, verdict, ratio):
    """A promise is kept or not."""
    found = shown(dataclasses.replace(CLAIM, peers=(), asked=asked), RECORDS)

    assert (verdict, ratio) == (found.verdict, found.ratio)


def test_none_of_nothing_is_kept():
    """Zero violations of zero asked for: kept, and no ratio."""
    rows = [["Light", "ours", 0.0, 1]]
    made = {"made": {"quick": False, "tables": [TABLE | {"rows": rows}]}}
    found = shown(dataclasses.replace(CLAIM, peers=(), asked=0.0), made)

    assert ("kept", None) == (found.verdict, found.ratio)


@pytest.mark.parametrize(
    "lost",
    [
        dataclasses.replace(rivals(), table="Rank 11"),
        dataclasses.replace(rivals(), where={"stream": "Volt"}),
        dataclasses.replace(rivals(), but=("ours", "a ", "one ")),
    ],
)
def test_a_rival_that_is_not_there_is_an_error(lost):
    """A renamed table, a renamed row, and rows without a figure."""
    with pytest.raises(LookupError):
        shown(dataclasses.replace(CLAIM, peers=(lost,)), RECORDS)


def test_a_pick_may_take_the_worst_of_its_rows():
    """Of all rows together."""
    worst = Pick("made", "Rank 10", "kB", {}, "any", one="most")

    assert [("any", 900.0)] == worst.figures(RECORDS)
