"""`benchmarks/compare.py`: methods side by side, one's own among them; bad input is one line."""

from __future__ import annotations

import json

import numpy as np
import pytest

import compare

MINE = """
import numpy as np

class First:
    def __init__(self, rank):
        self.rank = rank
    def partial_fit(self, block):
        self.dim = block.shape[1]
    def basis(self):
        return np.eye(self.dim)[:, : self.rank]

class Skew(First):
    def basis(self):
        return np.ones((self.dim, self.rank))

class Mute:
    def __init__(self, rank):
        pass

class Text(First):
    def basis(self):
        return "directions"

class Whole(First):
    def basis(self):
        return np.eye(self.dim)

class Nothing(First):
    def basis(self):
        return np.eye(self.dim)[:, :0]

class Fails(First):
    def partial_fit(self, block):
        raise ArithmeticError("no\\nluck")

number = 3
"""


@pytest.fixture
def bench(monkeypatch, capsys, tmp_path):
    """Run the command as a shell would: exit status, standard output, standard error."""
    (tmp_path / "mine_of_test.py").write_text(MINE)
    monkeypatch.syspath_prepend(tmp_path)
    rows = np.random.default_rng(0).standard_normal((300, 6)) * np.arange(1, 7)
    np.savetxt(tmp_path / "rows.csv", rows, delimiter=",", header="a,b,c,d,e,f", comments="")
    (tmp_path / "broken_of_test.py").write_text("class First(\n")
    lines = (tmp_path / "rows.csv").read_text().splitlines()
    named = [f"{line},{'kind' if not at else 'pump'}" for at, line in enumerate(lines)]
    (tmp_path / "named.csv").write_text("\n".join(named) + "\n")
    (tmp_path / "flat.csv").write_text("a,b,c\n1,2,3\n2,4,6\n3,6,9\n5,10,15\n")

    def run(*arguments):
        monkeypatch.setattr("sys.argv", ["compare", "--quiet", *map(str, arguments)])
        status = 0
        try:
            compare.main()
        except SystemExit as ends:
            status = ends.code
        return status, *capsys.readouterr()

    run.rows = tmp_path / "rows.csv"
    return run


def test_a_file_is_learnt_by_all_methods(bench):
    """Ours is exact, and a method of one's own stands among the others."""
    name = "mine_of_test:First"
    status, out, _ = bench(bench.rows, "--rank", 2, "--passes", 1, "--method", name, "--json")
    methods = json.loads(out)["methods"]

    assert (0, 300) == (status, json.loads(out)["rows"])
    assert 1.0 == pytest.approx(methods["submerge"]["over_optimum"])
    # It shows the two channels that vary least, ours the two that vary most.
    assert methods[name]["over_optimum"] > 2.0
    assert methods[name]["rank"] == 2
    assert all(each["over_optimum"] >= 1 - 1e-9 for each in methods.values())


@pytest.mark.slow
def test_the_table_has_a_line_for_each_method(bench):
    """Without a file, a generated spectrum is learnt."""
    status, out, _ = bench("--alpha", 2, "--rank", 3, "--passes", 1)

    assert (0, 2 + 10) == (status, len(out.splitlines()))
    assert "Synth(2): 4000 rows of 400 columns, rank 3" in out


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("--method", "mine"), "a method is module:Class, got 'mine'"),
        (("--method", "mine_of_test:None_"), "mine_of_test has no None_"),
        (("--method", "no.such:Thing"), "No module named 'no'; is its folder in PYTHONPATH?"),
        (("--method", "mine_of_test:Mute"), "without partial_fit"),
        (("--method", "mine_of_test:Skew"), "Skew: basis() must have orthonormal columns, got"),
        (("--method", "mine_of_test:Text"), "Text: basis() must be an array, got str"),
        (("--method", "mine_of_test:Whole"), "must have shape (6, 5) or less, got (6, 6)"),
        (("--method", "mine_of_test:Nothing"), "must have shape (6, rank), got (6, 0)"),
        (("--method", "mine_of_test:number"), "expected a class, got int"),
        (
            ("--method", "mine_of_test:Fails"),
            "Fails: it raised ArithmeticError: no luck (mine_of_test.py, line 34)",
        ),
        (("--method", "broken_of_test:First"), "broken_of_test raised SyntaxError"),
        (("--rank", 6), "--rank must be below 6, the least of rows and columns, got 6"),
    ],
)
def test_bad_input_is_one_line(bench, arguments, line):
    """Exit status 2, and what to do."""
    status, _, err = bench(bench.rows, "--rank", 2, "--passes", 1, *arguments)

    assert (2, 1) == (status, len(err.strip().splitlines()))
    assert line in err


def test_a_spectrum_without_a_number_is_refused(bench):
    """NaN is within any range."""
    status, _, err = bench("--alpha", "nan", "--rank", 2)

    assert (2, 1) == (status, len(err.strip().splitlines()))
    assert "--alpha must be a number from 0 to 10, got nan" in err


def test_rows_in_few_directions_have_nothing_to_compare(bench):
    """The best subspace of their rank misses nothing."""
    status, _, err = bench(bench.rows.with_name("flat.csv"), "--rank", 1)

    assert (2, 1) == (status, len(err.strip().splitlines()))
    assert "expected rows that vary in more than 1 directions: lower --rank" in err


def test_a_column_of_text_is_left_out_and_named(bench):
    """As `fit` does it; `--skip` says nothing of it."""
    named = bench.rows.with_name("named.csv")
    noted, out, err = bench(named, "--rank", 2, "--passes", 1, "--json")
    skipped, same, silent = bench(named, "--rank", 2, "--passes", 1, "--skip", "kind", "--json")

    assert (0, 6, 0, 6) == (noted, json.loads(out)["dim"], skipped, json.loads(same)["dim"])
    assert "column kind is text" in err
    assert "kind" not in silent
