"""Rows for jobs: each in one set and one group; what k-means tells of them is of whole groups."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge.errors import ShapeError, UsageError
from submerge.jobs.kind import PhaseDown
from submerge.jobs.kinds.kmeans import KMeansJob
from submerge.jobs.points import split
from submerge.jobs.row_groups import FEWEST, LEAST_ROWS, RowSets, near_groups
from submerge.kernel.kmeans_rounds import group_tally, tally

seeds = st.integers(0, 2**32)


def rows_of(n: int) -> np.ndarray:
    """Rows that name themselves."""
    return np.arange(1.0, 1.0 + n)[:, None]


def names(rows: np.ndarray) -> set[int]:
    return {int(each) for each in rows[:, 0]}


def clouds(n: int, seed: int, dim: int = 3) -> np.ndarray:
    """Rows of some clouds that overlap, some of them twice."""
    rng = np.random.default_rng(seed)
    rows = 2.0 * rng.standard_normal((4, dim))[rng.integers(4, size=n)]
    rows += rng.standard_normal((n, dim))
    rows[: n // 5] = rows[n // 5 : 2 * (n // 5)]
    return rows


@given(st.integers(0, 200), st.integers(1, 4), seeds)
def test_each_row_is_in_one_group_of_five_or_more(n, dim, seed) -> None:
    """Fewer than ten: where there are no more rows, they are one group."""
    sizes = np.bincount(near_groups(clouds(n, seed, dim)))

    assert n == sizes.sum()
    assert all(min(n, FEWEST) <= size < 2 * FEWEST for size in sizes)


@pytest.mark.parametrize("row", [0.0, 1e20, 1e-160])
def test_equal_rows_have_groups_too(row) -> None:
    """Of no length, of one whose square is huge, and of one whose square is none."""
    assert 8 == len(np.bincount(near_groups(np.full((40, 2), row) * [[1, 0]])))


def test_rows_that_are_near_are_in_one_group() -> None:
    """Clouds far apart do not mix: so a group belongs to a cluster as its rows do."""
    rows = np.repeat(100.0 * np.arange(5), 20)[:, None] + clouds(100, 3, 1)
    groups = near_groups(rows)

    assert all(np.ptp(rows[groups == each]) < 50 for each in set(groups.tolist()))


@given(st.integers(1, 60), st.lists(st.integers(0, 90), max_size=12), seeds)
def test_no_two_sets_share_a_row(most, sizes, seed) -> None:
    """However many jobs come: a set stays until as many rows have come since."""
    sets, come, seen = RowSets(most, 1, np.random.default_rng(seed)), 0, list[set[int]]()
    for new in sizes:
        sets.add(rows_of(come + new)[come:])
        come += new
        rows, order, _ = sets.draw(1)
        again, same, _ = sets.draw(1)
        np.testing.assert_array_equal(rows, again)
        np.testing.assert_array_equal(order, same)
        assert len(rows) == 0 or LEAST_ROWS <= len(rows) <= most
        if not seen or names(rows) != seen[-1]:
            seen.append(names(rows))

    assert sum(map(len, seen)) == len(set().union(*seen))


def test_attempts_over_a_set_are_counted() -> None:
    """And again from none when there is another."""
    sets = RowSets(20, 1, np.random.default_rng(0))
    sets.add(rows_of(20))
    assert [3, 6, 9] == [sets.draw(3)[2] for _ in range(3)]
    sets.add(rows_of(20) + 20)
    assert [1, 2] == [sets.draw(1)[2] for _ in range(2)]


def test_a_set_is_as_uniform_as_its_stream() -> None:
    """Of 100 sets of 256 in 2,560: the older, the middle and the newer rows, a tenth of each."""
    found = np.zeros(2560)
    for seed in range(100):
        sets = RowSets(256, 1, np.random.default_rng(seed))
        sets.add(rows_of(2560)[:700])
        sets.add(rows_of(2560)[700:])
        found[sets.draw(1)[0][:, 0].astype(int) - 1] += 1

    assert (np.abs(found.reshape(10, 256).mean(axis=1) / 100 - 0.1) < 0.02).all()


def test_rows_of_another_width_are_refused() -> None:
    """And so is a sample of no rows."""
    with pytest.raises(ShapeError):
        RowSets(8, 2, np.random.default_rng(0)).add(np.zeros((1, 3)))
    with pytest.raises(UsageError):
        RowSets(0, 2, np.random.default_rng(0))


# -- what a parent that chooses the centers learns ---------------------------------------

SHARES = (0.0, 0.1, 0.25, 0.5, 0.9)


def told(
    rows: np.ndarray, order: np.ndarray, share: float, centers: np.ndarray, phase: str
) -> dict:
    """What a participant says of its rows at centers that a parent has chosen."""
    points = split(rows, {"held_out": share}, order)
    kind = KMeansJob({"clusters": len(centers)}, rows.shape[1])
    return kind.contribute(None, PhaseDown(phase, {"centers": centers}), points, "pump-1")[1]


@pytest.mark.parametrize("phase", ["lloyd", "measure"])
@given(st.integers(8, 64), seeds, st.sampled_from(SHARES))
def test_no_two_rounds_differ_by_fewer_than_five_rows(phase, n, seed, share) -> None:
    """A border between clusters that moves along a line: five rows pass it together, or none."""
    rng = np.random.default_rng(seed)
    rows, order = clouds(n, seed, 1), rng.random(n)
    ats = np.linspace(-8, 8, 40)
    counts = [
        told(rows, order, share, np.array([[-50.0], [50.0 + 2 * at]]), phase)["counts"][0]
        for at in ats
    ]

    assert (np.diff(sorted({0.0, *counts})) >= FEWEST).all()


def test_no_row_follows_from_any_number_of_sums() -> None:
    """Of 60 jobs with shares and centers of a parent's choice no row's own sum follows."""
    rng = np.random.default_rng(5)
    rows, order, members = clouds(80, 1), rng.random(80), list[np.ndarray]()
    for _ in range(60):
        points = split(rows, {"held_out": float(rng.choice(SHARES))}, order)
        centers = rng.standard_normal((4, 3))
        for part, groups in ((points.rows, points.groups), (points.held_out, points.groups_out)):
            assert groups is not None
            found = group_tally(part, groups, FEWEST)
            nearest = tally(found.means, centers, found.counts)
            whole = {
                number: np.array(
                    [(row == part[groups == number]).all(axis=1).any() for row in rows]
                )
                for number in set(groups.tolist())
            }
            labels = {
                number: int(np.square(centers - rows[each].mean(axis=0)).sum(axis=1).argmin())
                for number, each in whole.items()
            }
            for cluster in range(4):
                mine = [whole[number] for number, label in labels.items() if label == cluster]
                if mine:
                    members.append(np.any(mine, axis=0) * 1.0)
                    assert nearest.counts[cluster] == sum(
                        np.sum(groups == n) for n, label in labels.items() if label == cluster
                    )
    _, sigma, vt = np.linalg.svd(np.array(members), full_matrices=False)
    alone = np.square(vt[sigma > 1e-9 * sigma[0]]).sum(axis=0)

    assert (alone < 0.5).all()


def test_a_cost_is_that_of_whole_groups() -> None:
    """A border that passes one row changes nothing: the cost is a line between borders."""
    rng = np.random.default_rng(0)
    rows = clouds(40, 7, 1)
    order = rng.random(40)
    at = np.linspace(0.0, 4.0, 401)
    costs = np.array(
        [
            told(rows, order, 0.0, np.array([[-30.0], [30.0 + each]]), "measure")["cost"][0]
            for each in at
        ]
    )
    # Second differences of squares are twice the rows that belong to the second center.
    belong = np.diff(costs, 2) / (2 * (at[1] - at[0]) ** 2)
    groups = np.sort(np.bincount(near_groups(rows)))

    smooth = belong[np.abs(belong - np.rint(belong)) < 1e-3]
    assert len(smooth) > 350
    assert {*np.rint(smooth).astype(int).tolist()} <= sums_of(groups)


def sums_of(sizes: np.ndarray) -> set[int]:
    """Return all sums of some of the sizes."""
    found = {0}
    for size in sizes.tolist():
        found |= {each + size for each in found}
    return found


def test_distances_are_told_once_an_attempt_and_only_of_the_farther_half() -> None:
    """What asks again is refused; what is nearer than the median is told as the median."""
    rows = clouds(80, 2)
    points = split(rows, {"held_out": 0.5}, np.random.default_rng(0).random(80))
    kind, down = KMeansJob({"clusters": 1}, 3), PhaseDown("measure", {"centers": rows[:1]})
    memory, up = kind.contribute(None, down, points, "pump-1")

    assert 2 * up["distances"].max() >= len(points.held_out)
    with pytest.raises(UsageError, match="once"):
        kind.contribute(memory, down, points, "pump-1")
