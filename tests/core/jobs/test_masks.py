"""Masked jobs: the sum of all is exact, any other is noise, and no two sums have a difference."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from submerge.errors import PeerError, UsageError
from submerge.jobs import masks
from submerge.jobs.arrays import Arrays
from submerge.jobs.envelopes import JobShare
from submerge.jobs.job import Leaver
from submerge.jobs.kind import PhaseDown
from submerge.jobs.kinds import KINDS, kind_of
from submerge.jobs.local_run import run_here
from submerge.jobs.machine import JobPiece
from submerge.jobs.masks import AGREE, FEW, FEWEST_NODES, IN_A_SUM, KEYS, from_limbs, to_limbs
from submerge.jobs.member import JobMember
from submerge.jobs.points import JobPoints, split
from submerge.jobs.roster import names
from submerge_lab.simulator.jobs.masking import SimulatedMasking
from support.job_table import JobTable, job

NODES = "abcdefg"
STEP = Fraction(1, 2**64)

numbers = st.floats(-1e49, 1e49)


def rows(name: str, n: int = 40) -> np.ndarray:
    """Rows in the plane, around one of three places."""
    rng = np.random.default_rng(ord(name))
    return rng.normal(size=(n, 2)) + 9.0 * rng.integers(0, 3, size=(n, 1))


def halls() -> dict[str, object]:
    """Two aggregators with three clients each, and one at the root."""
    first, second = ({name: rows(name) for name in part} for part in ("abc", "def"))
    return {"hall-1": first, "hall-2": second, "g": rows("g")}


def masked(kind: str = "moments", **settings: object):
    """Return a masked job."""
    more = {"clusters": 3} if kind == "kmeans" else {}
    return job(kind, settings={"masked": True, **more, **settings})


def same(left: object, right: object) -> bool:
    """Whether arrays are equal to the bit."""
    return left.keys() == right.keys() and all(
        left[name].tobytes() == right[name].tobytes() for name in left
    )


@given(st.lists(numbers, min_size=1, max_size=40))
@example([1e49, 1.0, -1e49])
@example([2.0**-65, 2.0**-65])
def test_sums_are_exact_to_half_a_step_each(values) -> None:
    """And to the rounding of one float64: whatever cancels, nothing is lost."""
    total = sum(to_limbs(np.array([each])) for each in values)
    exact = sum(map(Fraction, values))

    off = abs(Fraction(from_limbs(total)[0].item()) - exact)
    assert off <= len(values) * STEP / 2 + abs(exact) * Fraction(1, 2**53)


@given(st.lists(numbers, min_size=2, max_size=9), st.randoms())
def test_sums_do_not_depend_on_order_or_tree(values, random) -> None:
    """Modulo 2^256 there is neither."""
    parts = [to_limbs(np.array([each])) for each in values]
    total = from_limbs(sum(parts))
    random.shuffle(parts)
    cut = random.randrange(1, len(parts))

    assert total == from_limbs(sum(parts[:cut]) + sum(parts[cut:]))


@pytest.mark.parametrize("kind", ["moments", "kmeans"])
def test_a_masked_answer_is_that_of_one_process_in_any_tree(kind) -> None:
    """To the bit; beneath aggregators as well as below the root alone."""
    flat = {name: rows(name) for name in NODES}
    asked = masked(kind, held_out=0.2)
    answers = [JobTable(parts).run(asked).answer for parts in (flat, halls())]

    expected = run_here(kind, asked.settings, flat)
    assert [True, True] == [same(expected, each) for each in answers]


def test_a_masked_answer_is_the_plain_one_to_rounding() -> None:
    """Steps of 2^-64 are below what float64 rounds in sums of rows."""
    parts = {name: rows(name) for name in NODES}
    plain, hidden = (run_here("moments", each, parts) for each in ({}, {"masked": True}))

    assert plain["count"] == hidden["count"]
    assert np.allclose(plain["mean"], hidden["mean"], rtol=1e-14, atol=0)
    assert np.allclose(plain["variance"], hidden["variance"], rtol=1e-14, atol=0)


def test_masked_clusters_are_those_that_there_are() -> None:
    """Grown from one, as no sample of centers goes up."""
    parts = {name: rows(name, 120) for name in NODES}
    plain, hidden = (
        run_here("kmeans", {"clusters": 3} | more, parts) for more in ({}, {"masked": True})
    )
    centers = [np.sort(each["centers"], axis=0) for each in (plain, hidden)]

    assert np.allclose(*centers, atol=0.05)


def shares(table: JobTable) -> list[tuple[str, JobShare]]:
    """What went up, share by share, and from whom."""
    found = {}
    for source, send in table.heard:
        piece = send.message
        if isinstance(piece, JobPiece) and piece.up:
            found.setdefault((source, piece.parcel), []).append(piece)
    return [
        (source, JobShare.unpack(b"".join(each.data for each in pieces)))
        for (source, _), pieces in found.items()
    ]


def read(up: Arrays) -> np.ndarray:
    """The numbers of a sum, masked or not."""
    return from_limbs(up["masked"].view("<u4").astype(np.uint64))


def test_all_that_goes_up_but_keys_is_masked() -> None:
    """A child's share, and that of a site of three: nothing in it is near what its rows are."""
    table = JobTable(halls())
    table.run(masked())
    seen = [(source, each.arrays) for source, each in shares(table) if each.arrays]

    assert {"nodes", "offers", "masked"} == {name for _, up in seen for name in up}
    told = [
        from_limbs(up["masked"].view("<u4").astype(np.uint64)) for _, up in seen if "masked" in up
    ]
    assert 2 * (len(NODES) + 2) == len(told)
    assert min(np.abs(each).max() for each in told) > 1e50


@pytest.mark.parametrize("left_out", NODES)
def test_a_sum_without_one_is_noise(left_out) -> None:
    """Six of seven: as far from what their rows add up to as chance has it."""
    table = JobTable({name: rows(name) for name in NODES})
    table.run(masked())
    ups = {source: each.arrays for source, each in shares(table) if len(each.arrays) == 1}
    kind = kind_of(masked())
    rest = [up for name, up in ups.items() if name != left_out]
    whole = kind.merge(PhaseDown("squares", {}), list(ups.values()))
    part = kind.merge(PhaseDown("squares", {}), rest)
    told = [read(each) for each in (whole, part)]

    assert np.abs(told[0]).max() < 1e6
    assert np.abs(told[1]).min() > 1e40


def test_fewer_than_five_are_not_summed() -> None:
    """The job fails, and says why."""
    outcome = JobTable({name: rows(name) for name in NODES[: FEWEST_NODES - 1]}).run(masked())

    assert FEW.format(FEWEST_NODES, FEWEST_NODES - 1) == outcome.failure


class Asked:
    """A participant that a parent of any kind asks; the others' keys are there."""

    def __init__(self) -> None:
        self.kind, self.memory = kind_of(masked()), None
        mine = split(rows("a"), {}, np.arange(40.0))
        self.points: JobPoints = mine._replace(masking=SimulatedMasking("a", 1))

    def asks(self, phase: str, arrays: object = (), *, anew: bool = False):
        """Ask for a round; of a new attempt it remembers nothing."""
        memory = None if anew else self.memory
        down = PhaseDown(phase, dict(arrays))
        self.memory, up = self.kind.contribute(memory, down, self.points, "a")
        return up

    def keys(self, others: str, *, anew: bool = False):
        """Ask for a key; return it with those of others."""
        ups = [self.asks(KEYS, anew=anew)]
        for name in others:
            points = self.points._replace(masking=SimulatedMasking(name, 1))
            ups.append(kind_of(masked()).contribute(None, PhaseDown(KEYS, {}), points, name)[1])
        return self.kind.merge(PhaseDown(KEYS, {}), ups)


@pytest.mark.parametrize("others", ["", "b", "bcd", "aabcd"])
def test_a_participant_counts_the_others_itself(others) -> None:
    """Whatever its parent says: its own key, and one twice, count once."""
    asked = Asked()
    keys = asked.keys(others)

    with pytest.raises(UsageError, match="5 nodes or more"):
        asked.asks(AGREE, keys)


def test_a_participant_sums_with_the_same_others_alone() -> None:
    """Two sums over different nodes would have a difference: that of one node."""
    asked = Asked()
    asked.asks(AGREE, asked.keys("bcde"))
    asked.asks("sums")

    for change in (
        lambda: asked.asks(AGREE, Asked().keys("bcdf")),
        lambda: asked.keys("bcdf"),
        lambda: asked.keys("bcdf", anew=True),
        lambda: asked.asks("sums", anew=True),
    ):
        with pytest.raises(UsageError):
            change()


def test_no_mask_is_used_twice() -> None:
    """The same numbers, asked for again in the attempt, are hidden by another stream."""
    asked = Asked()
    asked.asks(AGREE, asked.keys("bcde"))
    one, other = (asked.asks("sums")["masked"] for _ in range(2))

    assert not (one == other).all(axis=1).any()


class Leaving(JobTable):
    """A client stops when a phase begins."""

    def __init__(self, phase: str) -> None:
        self.phase = phase
        super().__init__({name: rows(name) for name in NODES})

    def step(self, name: str, event: object) -> None:
        super().step(name, event)
        if self.progress and self.progress[-1].phase == self.phase:
            self.stop("b")


@pytest.mark.parametrize("phase", [KEYS, AGREE])
def test_before_a_sum_a_leaver_drops_out(phase) -> None:
    """Nothing has been told: the job begins again with other keys, as any exact one."""
    outcome = Leaving(phase).run(masked())
    stayed = {name: rows(name) for name in NODES if name != "b"}

    assert {"b": Leaver("silent", 0)} == outcome.left
    assert same(run_here("moments", {"masked": True}, stayed), outcome.answer)


@pytest.mark.parametrize("phase", ["sums", "squares"])
def test_after_a_sum_the_others_take_part_no_more(phase) -> None:
    """Also where theirs was never whole: they cannot know. The outcome says so."""
    outcome = Leaving(phase).run(masked())

    assert outcome.answer is None
    assert frozenset() == names(outcome.stayed)
    whys = {leaver.why for name, leaver in outcome.left.items() if name != "b"}
    assert {f"what it was asked was refused: {IN_A_SUM}"} == whys


SIZE = 2**256


class Parent(Leaving):
    """It has all that its children say, and drops one of them after the first sum of all."""

    def known(self) -> set[str]:
        """The nodes whose sums it has: as they came, or by the difference of two totals."""
        by_turn: dict[int, list[np.ndarray]] = {}
        for _, send in self.heard:
            piece = send.message
            if isinstance(piece, JobPiece) and piece.up:
                arrays = JobShare.unpack(piece.data).arrays
                if len(arrays.get("masked", ())) == 4 or "sums" in arrays:
                    by_turn.setdefault(piece.stamp.seq, []).append(whole(arrays))
        totals = [sum(each) for each in by_turn.values()]
        told = [each for ups in by_turn.values() for each in ups]
        told += [one - other for one, other in itertools.permutations(totals, 2)]
        numbers = [[float((n + SIZE // 2) % SIZE - SIZE // 2) / 2**64 for n in up] for up in told]
        return {
            name
            for name in NODES
            if any(np.allclose(rows(name).sum(axis=0), each, atol=1e-6) for each in numbers)
        }


class Forgetful(set):
    """Knows no node."""

    def __contains__(self, node: object) -> bool:
        return False


def whole(arrays: Arrays) -> np.ndarray:
    """The sums of both channels, as whole numbers of steps."""
    words = arrays["masked"][2:] if "masked" in arrays else to_limbs(arrays["sums"]).astype("<u4")
    numbers = [int.from_bytes(each.tobytes(), "little") for each in words]
    return np.array(numbers, dtype=object)


def test_a_parent_learns_the_sum_of_no_node(monkeypatch) -> None:
    """It has all seven without masks; with them one, if it could begin again without it."""
    plain, hidden, again = (Parent("squares") for _ in range(3))
    plain.run(job("moments"))
    hidden.run(masked())
    monkeypatch.setattr(masks, "set", Forgetful, raising=False)
    again.run(masked())

    assert ({*NODES}, set(), {"b"}) == (plain.known(), hidden.known(), again.known())


def test_a_client_without_keys_says_so() -> None:
    """It declines when the job opens; the others go on."""
    table = JobTable({name: rows(name) for name in NODES})
    known = table.roles["c"]
    assert isinstance(known, JobMember)
    known._masking = "it has no certificate"
    outcome = table.run(masked())

    assert {"c": "it has no certificate"} == outcome.declined
    assert outcome.answer is not None


def test_a_masked_job_is_exact() -> None:
    """Without a leaver its masks would stay in the sum."""
    with pytest.raises(UsageError, match="is exact"):
        kind_of(replace(masked(), exact=False))


@pytest.mark.parametrize("kind", ["kpca", "cluster", "nystrom", "landmarks"])
def test_what_is_no_sum_cannot_be_masked(kind) -> None:
    """Such kinds do not know the setting."""
    needed = {each.name: 2 for each in KINDS[kind].listed if not each.default}
    with pytest.raises(UsageError, match="settings are"):
        kind_of(job(kind, settings={"masked": True, **needed}))


def test_keys_of_another_form_are_refused() -> None:
    """Before a participant reads them."""
    kind, good = kind_of(masked()), Asked().keys("bcde")
    kind.check_up(PhaseDown(KEYS, {}), good, 5)
    for name, wrong in itertools.product(good, (0, 2)):
        changed = np.tile(good[name], wrong)
        with pytest.raises(PeerError):
            kind.check_down(PhaseDown(AGREE, {**good, name: changed}))
    with pytest.raises(PeerError):
        kind.check_up(PhaseDown(KEYS, {}), good, 4)
