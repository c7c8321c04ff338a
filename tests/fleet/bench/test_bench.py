"""`submerge bench`: methods side by side, one's own among them; bad input is one line."""

from __future__ import annotations

import json

import numpy as np
import pytest

from support.commands import shell

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
"""


@pytest.fixture
def bench(monkeypatch, capsys, tmp_path):
    """Run the command as a shell would: exit status, standard output, standard error."""
    (tmp_path / "mine_of_test.py").write_text(MINE)
    monkeypatch.syspath_prepend(tmp_path)
    rows = np.random.default_rng(0).standard_normal((300, 6)) * np.arange(1, 7)
    np.savetxt(tmp_path / "rows.csv", rows, delimiter=",", header="a,b,c,d,e,f", comments="")

    run = shell(monkeypatch, capsys, "bench", "--quiet")
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

    assert (0, 2 + 9) == (status, len(out.splitlines()))
    assert "Synth(2): 4000 rows of 400 columns, rank 3" in out


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("--method", "mine"), "a method is module:Class, got 'mine'"),
        (("--method", "mine_of_test:None_"), "mine_of_test has no None_"),
        (("--method", "no.such:Thing"), "No module named 'no'; is its folder in PYTHONPATH?"),
        (("--method", "mine_of_test:Mute"), "without partial_fit"),
        (("--method", "mine_of_test:Skew"), "basis() must have shape orthonormal columns"),
        (("--rank", 6), "--rank must be below 6"),
    ],
)
def test_bad_input_is_one_line(bench, arguments, line):
    """Exit status 2, and what to do."""
    status, _, err = bench(bench.rows, "--rank", 2, "--passes", 1, *arguments)

    assert (2, 1) == (status, len(err.strip().splitlines()))
    assert line in err
