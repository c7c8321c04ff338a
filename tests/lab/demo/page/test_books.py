"""The line fed = counted + under way + declared lost: when it holds, and what it notices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from submerge_lab.demo.page.books import LATE, SETTLED, Books, Line
from submerge_lab.demo.page.fed_process import FedProcess
from submerge_lab.demo.page.held_counts import HeldNode, HeldPast, HeldRow

Children = dict[str, HeldNode]


def process(
    incarnation: str, *, given: int, claims: Mapping[int, int], **how: object
) -> FedProcess:
    """A process of client `c`; its words are how many readings are held, by report."""
    made = FedProcess("c", incarnations={incarnation}, **how)  # type: ignore[arg-type]
    for number in range(given):
        made.give(number, 0.0)
    for seq, readings in claims.items():
        made.claim(incarnation, seq, readings)
    return made


def held(name: str, incarnation: str, seq: int, learnt: int, *, sealed: int = 0) -> Children:
    """One child: the newest report of one incarnation, and what is over."""
    past = (HeldPast(sealed, 0, 0),) if sealed else ()
    return {name: HeldNode(name, (HeldRow(incarnation, seq, learnt, 0, 0),), past)}


def kept(
    processes: Sequence[FedProcess],
    here: Children | None,
    above: Children | None,
    *,
    rounds: int = 1,
    books: Books | None = None,
) -> Line:
    """The line after some rounds with these answers of the aggregator `a`, and of the root."""
    books = Books({"c": "a"}, "root") if books is None else books
    for _ in range(rounds):
        books.begin({"c": processes})
        books.end({"c": processes}, {"root": above, "a": here})
    assert books.line is not None
    return books.line


RUNS = {"given": 100, "claims": {7: 60, 8: 80}}


def test_each_reading_is_somewhere():
    """20 with the client, 10 with the aggregator, 70 with the root."""
    line = kept([process("i", **RUNS)], held("c", "i", 8, 80), held("a", "x", 3, 70))

    assert (100, 70, 20, 10, 0) == (
        line.fed,
        line.counted,
        line.in_clients,
        line.in_aggregators,
        line.lost,
    )
    assert line.holds
    assert 1 == line.compared


def test_words_and_counts_are_of_the_same_report():
    """What is acknowledged since the aggregator was asked does not count twice."""
    runs = process("i", **RUNS)
    books = Books({"c": "a"}, "root")
    books.begin({"c": [process("i", given=60, claims={7: 60})]})
    books.end({"c": [runs]}, {"root": held("a", "x", 3, 60), "a": held("c", "i", 7, 60)})

    assert books.line is not None
    assert books.line.holds
    assert 40 == books.line.in_clients


def test_an_answer_to_a_report_that_was_replaced_says_nothing_of_it():
    """The client knows then that its report 9 is held, and counts what was in report 8."""
    runs = process("i", given=100, claims={8: 80, 9: 80})
    line = kept([runs], held("c", "i", 9, 90), held("a", "x", 3, 70))

    assert line.holds
    assert (10, 0) == (line.in_clients, line.compared)


@pytest.mark.parametrize(
    ("here", "above", "expected"),
    [
        pytest.param(79, 70, "says that 80 readings of its report 8 are held", id="one lost"),
        pytest.param(81, 70, "says that 80 readings of its report 8 are held", id="one twice"),
        pytest.param(80, 81, "the root holds 81 of a, which holds 80", id="twice at the root"),
        pytest.param(101, 70, "was given 100 rows, and 101 are counted", id="more than was fed"),
    ],
)
def test_a_single_reading_is_noticed(here, above, expected):
    line = kept([process("i", **RUNS)], held("c", "i", 8, here), held("a", "x", 3, above))

    assert not line.holds
    assert expected in "\n".join(line.wrong)


def test_what_was_acknowledged_stays():
    """An aggregator that is back with less than it held, and than it acknowledged."""
    books, runs = Books({"c": "a"}, "root"), [process("i", **RUNS)]
    kept(runs, held("c", "i", 8, 80), held("a", "x", 3, 70), books=books)
    line = kept(runs, held("c", "i", 6, 50), held("a", "x", 3, 40), books=books)

    assert [
        "root held 70 of a, and holds 40 now",
        "a held 80 of c, and holds 50 now",
        "a acknowledged 80 of c, and holds 50",
    ] == line.wrong


def test_an_aggregator_that_is_down_has_its_last_answer_again():
    """What the root has heard of it since is not counted twice."""
    books, runs = Books({"c": "a"}, "root"), [process("i", **RUNS)]
    kept(runs, held("c", "i", 7, 60), held("a", "x", 3, 50), books=books)
    line = kept(runs, None, held("a", "x", 4, 80), books=books)

    assert line.holds
    assert (80, 40, -20) == (line.counted, line.in_clients, line.in_aggregators)


def after_a_kill(second_seq: int) -> list[FedProcess]:
    """A process that was killed with 100 rows, 80 of them acknowledged; the next one has 10."""
    first = process("i", **RUNS, killed=True, ended=True)
    return [first, process("j", given=10, claims={second_seq: 10})]


def test_what_went_with_a_killed_process_is_open_until_the_next_one_is_at_work():
    """The next one sends what the state file had: 5 readings more than were acknowledged."""
    books, above = Books({"c": "a"}, "root"), held("a", "x", 3, 80)
    first, second = after_a_kill(1)
    down = kept([first], held("c", "i", 8, 80), above, books=books, rounds=2 * LATE)
    assert (20, 0, True) == (down.open, down.gone, down.holds)

    here = held("c", "j", 1, 10, sealed=85)
    back = kept([first, second], here, above, books=books, rounds=SETTLED - 1)
    assert (15, 0, True) == (back.open, back.gone, back.holds)
    line = kept([first, second], here, above, books=books)
    assert (0, 15, True) == (line.open, line.gone, line.holds)

    second.ended = second.killed = True
    again = kept([first, second], here, above, books=books)
    assert (0, 15, True) == (again.open, again.gone, again.holds)


@pytest.mark.parametrize(
    ("sealed", "expected"),
    [
        pytest.param(79, "a acknowledged 90 of c, and holds 89", id="an acknowledged one is gone"),
        pytest.param(101, "1 readings of c are counted twice", id="more than it was fed"),
    ],
)
def test_a_kill_excuses_nothing_else(sealed, expected):
    here = held("c", "j", 1, 10, sealed=sealed)
    line = kept(after_a_kill(1), here, held("a", "x", 3, 70), rounds=2 + LATE)

    assert expected in line.wrong


def test_a_process_that_is_asked_to_end_takes_nothing_along():
    """By its own last line it had read all; one reading that no one has is noticed, in time."""
    first = process("i", **RUNS, ended=True)
    first.end_by_its_words(rows=100, lost=0)
    second = process("j", given=10, claims={1: 10})
    books, above = Books({"c": "a"}, "root"), held("a", "x", 3, 80)

    def line(sealed: int, rounds: int) -> Line:
        here = held("c", "j", 1, 10, sealed=sealed)
        return kept([first, second], here, above, books=books, rounds=rounds)

    early = line(99, SETTLED + 1)
    assert (1, True) == (early.open, early.holds)
    assert ["1 readings of c are gone, and 0 may be"] == line(99, LATE).wrong
    late = line(100, 1)
    assert (0, 0, True) == (late.open, late.gone, late.holds)


def test_rows_that_a_process_did_not_read_are_its_loss():
    """By its own last line: it was given 100 and read 98."""
    first = process("i", **RUNS, ended=True)
    first.end_by_its_words(rows=98, lost=0)
    second = process("j", given=10, claims={1: 10})
    here = held("c", "j", 1, 10, sealed=98)
    line = kept([first, second], here, held("a", "x", 3, 80), rounds=2 + SETTLED)

    assert (2, 0, True) == (line.gone, line.open, line.holds)


def test_there_is_no_line_before_the_root_has_answered():
    books, runs = Books({"c": "a"}, "root"), [process("i", **RUNS)]
    books.begin({"c": runs})
    books.end({"c": runs}, {"root": None, "a": held("c", "i", 8, 80)})

    assert books.line is None
