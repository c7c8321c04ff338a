"""`submerge replay`: the paper's figures on Light, trees, gaps, and one line for bad input."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from submerge_lab.replay.rows import deal
from submerge_operate import cli
from support import oracle
from support.commands import shell
from support.data import shared
from support.strategies import rows_of

KEYS = [
    "algorithm",
    "rows",
    "dim",
    "rank",
    "error",
    "optimum",
    "ratio",
    "frobenius_bound",
    "spectral_bound",
    "energy",
    "seconds",
    "peak_bytes",
    "fallbacks",
]


@pytest.fixture
def submerge(monkeypatch, capsys):
    """Run the command as a shell would: exit status, standard output, standard error."""
    return shell(monkeypatch, capsys)


@pytest.fixture
def matrix(tmp_path) -> Path:
    path = tmp_path / "matrix.dat"
    np.savetxt(path, rows_of("decaying", 600, 30, seed=0) + 4)
    return path


def test_light_with_the_defaults_is_exact(replay):
    """Light, rank 10, block 50: ratio 1 to 1e-9, and the output says why."""
    found = replay(shared("motes/light.dat.gz"), "--rank", 10, "--block", 50, "--center", "offline")

    assert abs(found["ratio"] - 1) <= 1e-9
    assert found["algorithm"].startswith("exact covariance")
    assert list(found)[: len(KEYS)] == KEYS


@pytest.mark.parametrize(("oversample", "most"), [(0, 1.06), (5, 1.01)])
def test_light_by_streaming(replay, oversample, most):
    """Without the exact path: 1.06 with no spares, 1.01 with five."""
    found = replay(
        shared("motes/light.dat.gz"),
        "--rank",
        10,
        "--block",
        50,
        "--center",
        "offline",
        "--exact",
        "never",
        "--oversample",
        oversample,
    )

    assert found["algorithm"] == "SPCA"
    assert 1 < found["ratio"] <= most
    assert found["frobenius_bound"] >= found["error"]


@pytest.mark.parametrize(
    ("block", "rank", "error"),
    [(50, 9, 7.636e5), pytest.param(20, 7, 9.729e5, marks=pytest.mark.slow)],
)
def test_light_as_the_paper(replay, block, rank, error):
    """The ranks and errors that the authors' code gives, its mistakes corrected."""
    found = replay(shared("motes/light.dat.gz"), "--paper", "--rank", 10, "--block", block)

    assert (rank, 7700, "SAPCA") == (found["rank"], found["rows"], found["algorithm"])
    assert np.isclose(error, found["error"], rtol=1e-4)


@pytest.mark.parametrize("deal", ["turn", "runs"])
def test_light_in_a_tree(replay, deal):
    """Eight leaves, streamed and merged: within a hundredth of the optimum."""
    found = replay(shared("motes/light.dat.gz"), "--leaves", 8, "--exact", "never", "--deal", deal)

    assert found["ratio"] <= 1.01
    assert found["leaves"] == 8


@pytest.mark.parametrize("center", ["stream", "none", "offline"])
@pytest.mark.parametrize("exact", ["auto", "never"])
@pytest.mark.parametrize("leaves", [1, 3])
def test_error_and_optimum_are_those_of_the_oracle(replay, matrix, center, exact, leaves):
    """(1/n) ||Y - Y U U'||^2, and the best that any subspace of that rank could do."""
    found = replay(
        matrix,
        "--rank",
        4,
        "--center",
        center,
        "--exact",
        exact,
        "--leaves",
        leaves,
    )

    truth = oracle.twin(np.loadtxt(matrix), center=center != "none")
    assert np.isclose(truth.eigenvalues[4:].sum() / 600, found["optimum"], rtol=1e-9)
    assert np.isclose(truth.energy / 600, found["energy"], rtol=1e-9)
    assert 1 - 1e-12 <= found["ratio"] <= 1.02
    assert found["error"] <= found["frobenius_bound"] + 1e-12 * found["energy"]


def test_full_rank_has_a_ratio_all_the_same(replay, matrix):
    """No error over an optimum of none is 1, not a division by rounding."""
    assert replay(matrix, "--rank", 30)["ratio"] == 1.0


@pytest.mark.parametrize("rule", ["sapca", "energy"])
def test_adaptive_rules_run(replay, matrix, rule):
    """And say so."""
    found = replay(matrix, "--rank-rule", rule, "--exact", "never", "--rank", 4, "--block", 20)

    assert found["algorithm"] == "SAPCA"
    assert found["rank"] != 4


def test_gaps_are_rejected_dropped_or_filled(replay, submerge, tmp_path):
    """As was asked, and counted; zero is missing only if it is said to be."""
    X = rows_of("low rank", 200, 12, seed=1) + 9
    X[105, 2] = 0
    X[117, 3] = X[117, 4] = np.nan
    path = tmp_path / "gaps.npy"
    np.save(path, X)

    status, _, err = submerge("replay", path, "--rank", 3)
    assert status == 2
    assert "2 missing values, the first in data row 118, column x3" in err
    dropped = replay(path, "--rank", 3, "--missing", "drop", "--zero-is-missing")
    assert (198, 2, 1) == (dropped["rows"], dropped["dropped"], dropped["zeros"])
    filled = replay(path, "--rank", 4, "--missing", "impute", "--zero-is-missing")
    assert (200, 3, 1) == (filled["rows"], filled["filled"], filled["zeros"])
    # Four directions are all there is, so filling leaves the rank at four.
    assert filled["error"] <= 1e-3 * filled["energy"]


def test_the_error_of_missing_values_is_reported(replay, tmp_path):
    """Within 10 % of what it is, by values that are hidden on purpose; without gaps, nothing."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 3)) @ rng.standard_normal((3, 20)) * 5
    X += rng.standard_normal(X.shape)
    missing = rng.random(X.shape) < 0.2
    path = tmp_path / "gaps.npy"
    np.save(path, X)
    whole = replay(path, "--rank", 3)
    np.save(path, np.where(missing, np.nan, X))

    found = replay(path, "--rank", 3, "--missing", "impute")

    C, mean = np.cov(X.T), X.mean(axis=0)
    squares = []
    for row, gaps in zip(X, missing, strict=True):
        pull = C[np.ix_(gaps, ~gaps)] @ np.linalg.inv(C[np.ix_(~gaps, ~gaps)])
        squares.extend((row[gaps] - mean[gaps] - pull @ (row - mean)[~gaps]) ** 2)
    assert whole["hidden_error"] is None
    assert 0.9 < found["hidden_error"] / np.mean(squares) < 1.1


@pytest.mark.slow
def test_the_picture_is_drawn(submerge, matrix, tmp_path):
    """A PNG, for one engine and for a tree, and the figures with it."""
    for number, options in enumerate([(), ("--leaves", 4), ("--rank-rule", "sapca")]):
        path = tmp_path / f"{number}.png"
        status, out, err = submerge("replay", matrix, "--plot", path, *options)
        assert status == 0, err
        assert path.read_bytes().startswith(b"\x89PNG")
        assert str(path) in out


def test_a_person_reads_every_figure(submerge, matrix):
    """Without --json: a line each, the algorithm first."""
    _, out, _ = submerge("replay", matrix, "--exact", "never")

    words = [line.split()[0] for line in out.splitlines()]
    assert words == (
        [
            "algorithm",
            "rows",
            "rank",
            "error",
            "optimum",
            "ratio",
            "bounds",
            "energy",
            "speed",
            "memory",
            "fall-backs",
        ]
    )


@pytest.mark.slow
def test_a_picture_never_destroys_anything(submerge, matrix, tmp_path):
    """Not what is read, not what is no picture; an older picture may go."""
    data = tmp_path / "data.png"
    data.write_bytes(matrix.read_bytes())
    other = tmp_path / "other.png"
    other.write_text("not a picture")
    older = tmp_path / "older.png"
    older.write_bytes(b"\x89PNG\r\n\x1a\n")

    for place, words in [(data, "is read from"), (other, "is no PNG")]:
        before = place.read_bytes()
        status, out, err = submerge("replay", data, "--plot", place)
        assert (2, "") == (status, out)
        assert words in err
        assert place.read_bytes() == before
    assert submerge("replay", data, "--plot", older)[0] == 0
    assert older.stat().st_size > 1000
    assert not list(tmp_path.glob(".*.part"))


@pytest.mark.slow
def test_rows_that_are_all_alike_have_a_picture_too(submerge, tmp_path):
    """Nothing varies: no error, no warning, a flat spectrum."""
    path = tmp_path / "flat.csv"
    path.write_text("1,2\n" * 30)

    status, out, err = submerge("replay", path, "--plot", tmp_path / "flat.png")

    assert (0, "") == (status, err)
    assert "rank         0" in out


def test_columns_can_be_skipped(replay, tmp_path):
    """A column of words is left out by name; what stands in it is not looked at."""
    path = tmp_path / "words.csv"
    path.write_text("a,b,kind,c\n" + "".join(f"{i},{i * i % 7},word,{-i}\n" for i in range(9)))

    assert replay(path, "--skip", "kind", "--rank", 1)["dim"] == 3
    assert replay(path, "--skip", "kind", "--skip", "a", "--rank", 1)["dim"] == 2


@pytest.mark.parametrize("leaves", [1, 4])
@pytest.mark.parametrize("exact", ["auto", "never"])
def test_forgetting_is_held_to_the_same_account(replay, matrix, exact, leaves):
    """Rows weigh in the optimum what they weighed in the stream: the exact path is exact."""
    found = replay(
        matrix, "--forgetting-factor", 0.98, "--exact", exact, "--leaves", leaves, "--rank", 4
    )

    assert 1 - 1e-9 <= found["ratio"] <= (1 + 1e-9 if (exact, leaves) == ("auto", 1) else 1.05)
    assert found["error"] <= found["frobenius_bound"] + 1e-12 * found["energy"]


@pytest.mark.parametrize("exact", ["auto", "never"])
@pytest.mark.parametrize("leaves", [2, 100, 300, 600])
def test_small_leaves_do_not_lower_the_rank(replay, matrix, leaves, exact):
    """Leaves of a row or two have fewer directions than were asked for; the root has not."""
    found = replay(matrix, "--leaves", leaves, "--exact", exact)

    assert found["rank"] == 10
    assert found["ratio"] <= 1.02


def test_leaves_that_saw_nothing_vary_merge_all_the_same(replay, tmp_path):
    """Equal rows in each leaf: what varies is between them."""
    path = tmp_path / "runs.csv"
    path.write_text("".join(f"{i // 30},{i // 60},5\n" * 1 for i in range(240)))

    found = replay(path, "--leaves", 8, "--deal", "runs", "--rank", 2)

    assert (2, 1.0) == (found["rank"], round(found["ratio"], 9))


def test_rows_are_dealt_as_was_asked():
    """In turn: every third; in runs: a third at a time."""
    rows = np.arange(9.0)[:, None]

    assert [list(part[:, 0]) for part in deal(rows, 3, "turn")] == [
        [0, 3, 6],
        [1, 4, 7],
        [2, 5, 8],
    ]
    assert [list(part[:, 0]) for part in deal(rows, 3, "runs")] == [
        [0, 1, 2],
        [3, 4, 5],
        [6, 7, 8],
    ]


def test_filling_with_offline_centers_uses_the_mean_of_what_is_there(replay, tmp_path):
    """A constant channel with gaps stays constant, at the start of the stream too."""
    X = rows_of("decaying", 200, 8, seed=1)
    X[:, 3] = 50.0
    X[::4, 3] = np.nan
    path = tmp_path / "gaps.npy"
    np.save(path, X)
    others = oracle.twin(np.delete(X, 3, axis=1))

    for center in ("offline", "stream"):
        found = replay(path, "--missing", "impute", "--center", center, "--rank", 2)
        assert np.isclose(found["energy"], others.energy / 200, rtol=1e-9)


@pytest.mark.slow
def test_the_memory_of_a_rank_that_grows_is_measured_to_the_end(replay, tmp_path):
    """Not over the first blocks, when it was small."""
    path = tmp_path / "noise.npy"
    np.save(path, rows_of("noise", 3000, 200, seed=0))
    options = ("--rank-rule", "energy", "--rank", 1, "--block", 20, "--exact", "never")

    found = replay(path, *options)

    assert found["rank"] > 60
    assert found["peak_bytes"] > 8 * 200 * (found["rank"] + 20)


def test_a_reading_too_large_is_named_by_its_place_in_the_file(submerge, tmp_path):
    """Before it is dealt, centered or cut into blocks."""
    X = rows_of("noise", 600, 8, seed=0)
    X[500, 3] = 1e200
    path = tmp_path / "big.npy"
    np.save(path, X)

    for options in ((), ("--center", "offline"), ("--leaves", 8)):
        status, _, err = submerge("replay", path, "--rank", 2, *options)
        assert status == 2
        assert "got 1e+200 in data row 501, column x3" in err


BAD_FILES = {
    "missing": (None, "expected a file"),
    "empty": (b"", "empty"),
    "ragged": (b"1 2 3\n4 5\n", "line 2"),
    "text": (b"1,2\n3,4\n5,6\n7,abc\n", "'abc'"),
    "gap": (b"1,2\n,4\n5,6\n", "--missing"),
    "one-column": (b"1\n2\n3\n", "at least two columns"),
    "binary": (bytes(range(256)), "binary"),
    "nothing": (b"NA,NA\nNA,NA\n", "x0 has no value"),
    "silent": (b"1,NA\n2,NA\n", "x1 has no value"),
}


@pytest.mark.parametrize("kind", BAD_FILES)
def test_a_bad_file_is_one_line(submerge, tmp_path, kind):
    """Exit status 2, nothing on stdout, one line on stderr that says what is wrong."""
    content, words = BAD_FILES[kind]
    path = tmp_path / f"{kind}.dat"
    if content is not None:
        path.write_bytes(content)

    status, out, err = submerge("replay", path, "--rank", 1)

    assert (2, "") == (status, out)
    assert err.count("\n") == 1
    assert words in err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--rank", 0], "from 1 to the 30 columns, got 0"),
        (["--rank", 31], "from 1 to the 30 columns, got 31"),
        (["--rank-rule", "sapca", "--alpha", 0.1, "--beta", 0.1], "alpha 0.1 and beta 0.1"),
        (["--rank-rule", "energy", "--energy", 0.9, 0.8], "0.9 and 0.8"),
        (["--block", 0], "--block must be from 1 to the 600 rows, got 0"),
        (["--oversample", -1], "at least 0, got -1"),
        (["--forgetting-factor", 0], "in (0, 1], got 0"),
        (["--leaves", 601], "600 rows to 601 leaves"),
        (["--leaves", 2, "--fan-in", 3], "power of two"),
        (["--block", 601], "from 1 to the 600 rows, got 601"),
        (["--plot", "/nowhere/at/all.png"], "/nowhere/at"),
        (["--plot", "picture.pdf"], "to end in .png"),
        (["--alpha", 0.2], "--rank-rule sapca only"),
        (["--energy", 0.9, 0.95, "--rank-rule", "sapca"], "--rank-rule energy only"),
        (["--deal", "runs"], "--leaves 2 or more only"),
        (["--center", "own"], "--center own has an effect with --into only"),
        (["--paper", "--exact", "auto"], "--paper stands for --exact never"),
        (["--bounds"], "--bounds has an effect with --rank-rule sapca or energy only"),
        (["--over-time"], "--over-time has an effect with --json or --plot only"),
        (["--over-time", "--leaves", 2], "--over-time is of one stream"),
        (["--over-time", "--kernel", "gaussian"], "--over-time is for rows as they are"),
        (["--hold-off", 2], "--hold-off has an effect with --rank-rule sapca or energy only"),
        (["--paper", "--hold-off", -1], "--hold-off must be at least 0, got -1"),
        (["--skip", "x99"], "did you mean 'x9'?"),
        (["--frobnicate"], "--frobnicate"),
        (["--rank", "ten"], "'ten'"),
    ],
)
def test_a_bad_option_is_one_line(submerge, matrix, options, words):
    """Exit status 2 and one line: what was expected, what came."""
    status, _, err = submerge("replay", matrix, *options)

    assert status == 2
    assert err.count("\n") == 1
    assert words in err


def test_a_rule_that_can_never_move_is_noted(submerge, matrix):
    """A warning reaches a person as a line, not as a Python traceback."""
    status, _, err = submerge("replay", matrix, "--rank-rule", "sapca", "--beta", 1.5)

    assert status == 0
    assert err.startswith("note: the rank can never grow")


def test_help_shows_an_example():
    """Every subcommand's --help does."""
    for words in cli.commands():
        done = CliRunner().invoke(cli.submerge, [*words.split(), "--help"])
        assert done.exit_code == 0
        assert "Example: submerge" in done.output


def test_help_lists_all_commands(submerge):
    """In alphabetical order, without loading them."""
    status, out, _ = submerge("--help")

    assert status == 0
    assert all(f"  {words} " in out for words in cli.commands() if " " not in words)
