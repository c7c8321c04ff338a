"""`submerge replay --into URL`: files into an aggregator that runs."""

from __future__ import annotations

import asyncio
import json
import threading

import numpy as np
import pytest
from click.testing import CliRunner

from submerge import SAPCA, EnergyRank, SapcaRank
from submerge_aggregator.assembly import server_of
from submerge_aggregator.config import AggregatorConfig
from submerge_client.config.tomlfile import read
from submerge_operate import cli

SCALED = """
scaling = "fixed"
channels = [
    { name = "a", offset = 1.0, scale = 2.0 },
    { name = "b", offset = 1.0, scale = 2.0 },
    { name = "c", offset = 1.0, scale = 2.0 },
]
"""

ROOT = """
node = "root"
store = "{store}"
[listen.grpc]
address = "127.0.0.1:0"
insecure = true
[status]
address = ""
[timing]
model_every_s = 1
[groups.rows.schema]
channels = ["a", "b", "c"]
[groups.rows.summary]
rank = 2
"""

KERNEL = """
[groups.rows.schema.features]
kernel = "gaussian"
features = 64
gamma = {gamma}
[groups.rows.summary]
"""


@pytest.fixture(params=["none"])
def root(request, tmp_path):
    """A root on a port of the system's choice: with a scaling, a center, a kernel, or without."""
    path = tmp_path / "root.toml"
    text = ROOT.format(store=tmp_path / "root.db")
    if request.param == "fixed":
        text = text.replace('channels = ["a", "b", "c"]', SCALED)
    elif request.param == "measured":
        text = text.replace('"c"]\n', '"c"]\nscaling = "fleet"\n')
        text = text.replace("[timing]\n", "[advanced]\nscaling_rows = 150\n[timing]\n")
    elif request.param == "of the fleet":
        text = text.replace('"c"]\n', '"c"]\ncenter = "fleet"\n')
    elif request.param == "eight":
        text = text.replace('["a", "b", "c"]', str(list("abcdefgh")))
    elif request.param != "none":
        text = text.replace("[groups.rows.summary]\n", KERNEL.format(gamma=request.param))
        text = text.replace("[timing]\n", "[advanced]\nscaling_rows = 150\n[timing]\n")
    path.write_text(text)
    server = server_of(read(path, AggregatorConfig, {}))
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_until_complete, args=(server.run(),))
    thread.start()
    while not server.ready and thread.is_alive():
        threading.Event().wait(0.01)
    yield server
    loop.call_soon_threadsafe(server.stop)
    thread.join()
    loop.close()


def table(path, columns="abc", n=200):
    """A CSV of some correlated columns."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((n, 2)) @ rng.standard_normal((2, len(columns)))
    lines = [",".join(columns), *(",".join(f"{x:.6g}" for x in row) for row in rows)]
    path.write_text("\n".join(lines) + "\n")
    return rows


def into(server, *arguments):
    """Run the command against a root."""
    (downlink,) = server.downlinks
    url = f"grpc://127.0.0.1:{downlink.port}"
    return CliRunner().invoke(
        cli.submerge, ["replay", *map(str, arguments), "--into", url, "--json"]
    )


@pytest.mark.slow
def test_every_row_arrives_from_each_leaf(root, tmp_path):
    """Two clients of their own; the parent holds every row when the command ends."""
    table(tmp_path / "rows.csv")
    done = into(
        root, tmp_path / "rows.csv", "--group", "rows", "--insecure", "--leaves", 2, "--rank", 2
    )
    reported = json.loads(done.stdout)

    assert (0, 200, 200) == (done.exit_code, reported["rows"], reported["acknowledged"])
    ledger = root.worker.node.ledger("rows")
    assert 200 == ledger.counts().learnt
    assert {"replay-1", "replay-2"} == {node for node, _ in ledger.rows}


@pytest.mark.slow
@pytest.mark.parametrize("root", ["fixed"], indirect=True)
def test_no_row_is_lost_where_the_fleet_has_a_scaling(root, tmp_path):
    """Rows wait until the node has joined: a life before that would end with the join."""
    table(tmp_path / "rows.csv")
    done = into(root, tmp_path / "rows.csv", "--group", "rows", "--insecure", "--rank", 2)
    reported = json.loads(done.stdout)

    assert (0, 200, 0) == (done.exit_code, reported["acknowledged"], reported["lost"])
    assert 200 == root.worker.node.ledger("rows").counts().learnt


@pytest.mark.slow
@pytest.mark.parametrize("root", ["of the fleet"], indirect=True)
def test_the_center_is_as_the_group_has_it(root, tmp_path):
    """Each node's own, if nobody says another; a fleet that has one mean says so."""
    table(tmp_path / "rows.csv")
    options = (tmp_path / "rows.csv", "--group", "rows", "--insecure", "--rank", 2)

    refused = into(root, *options)
    assert "center: expected fleet, got own; choose it with --center" in str(refused.exception)
    assert not root.worker.node.ledger("rows").rows
    assert 200 == json.loads(into(root, *options, "--center", "fleet").stdout)["acknowledged"]


@pytest.mark.slow
@pytest.mark.parametrize("root", ["eight"], indirect=True)
@pytest.mark.parametrize("rule", [("sapca", "--alpha", 0.1, "--beta", 0.2), ("energy",)])
def test_each_client_has_a_rank_of_its_own(root, tmp_path, rule):
    """As the rule has of the same rows in one process, and the parent can see it."""
    table(tmp_path / "rows.csv", "abcdefgh", n=600)
    options = ("--insecure", "--leaves", 2, "--rank", 4, "--rank-rule", *rule)
    done = into(root, tmp_path / "rows.csv", "--group", "rows", *options)

    ledger = root.worker.node.ledger("rows")
    assert (0, 600) == (done.exit_code, ledger.counts().learnt)
    rows = np.loadtxt(tmp_path / "rows.csv", delimiter=",", skiprows=1)
    for row in ledger.rows.values():
        report = row.report
        kind = SapcaRank(4, 0.1, 0.2, highest=7) if rule[0] == "sapca" else EnergyRank(start=4)
        first = int(report.stamp.node[-1]) - 1
        alone = SAPCA(kind, exact="never").partial_fit(rows[first::2])
        assert (f"SAPCA, {kind}", alone.target) == report.method[:2]
        assert alone.target < 4


@pytest.mark.slow
@pytest.mark.parametrize("root", ["0.25", '"auto"'], indirect=True)
def test_a_kernel_group_is_fed(root, tmp_path):
    """By the fleet's gamma: rows that only measured for it are read again, and none is lost."""
    table(tmp_path / "rows.csv")
    options = ("--insecure", "--leaves", 2, "--rank", 4, "--kernel", "gaussian", "--features", 64)
    done = into(root, tmp_path / "rows.csv", "--group", "rows", *options)
    reported = json.loads(done.stdout)

    ledger = root.worker.node.ledger("rows")
    assert (0, 200, 200) == (done.exit_code, reported["rows"], reported["acknowledged"])
    assert 200 == ledger.counts().learnt
    assert ledger.schema.features.settled
    summary = ledger.summary()
    assert (200, 200) == (summary.features.weight, summary.linear.weight)


@pytest.mark.slow
@pytest.mark.parametrize("root", ["measured"], indirect=True)
def test_a_group_that_measures_its_scaling_is_fed(root, tmp_path):
    """Rows wait for the scaling, and each counts once under it."""
    table(tmp_path / "rows.csv")
    options = ("--group", "rows", "--insecure", "--leaves", 2, "--rank", 2)
    done = into(root, tmp_path / "rows.csv", *options, "--fleet-scaling")
    reported = json.loads(done.stdout)

    ledger = root.worker.node.ledger("rows")
    assert (0, 200, 200) == (done.exit_code, reported["rows"], reported["acknowledged"])
    assert 200 == ledger.counts().learnt
    assert ledger.schema.scaling is not None


@pytest.mark.slow
@pytest.mark.parametrize("root", ['"auto"'], indirect=True)
def test_rows_that_only_measured_were_not_told(root, tmp_path, monkeypatch):
    """Too few for the root to settle a gamma by: a line says so, and nothing is claimed."""
    monkeypatch.setattr("submerge_lab.replay.dealt.SETTLE_S", 0.5)
    table(tmp_path / "rows.csv", n=40)
    options = ("--insecure", "--kernel", "gaussian", "--features", 64)
    done = into(root, tmp_path / "rows.csv", "--group", "rows", *options)

    assert "has not settled its scaling or gamma" in str(done.exception)
    assert "" == done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--insecure",), "--into needs --group"),
        (("--group", "rows"), "insecure = true"),
        (
            ("--group", "rows", "--insecure", "--alpha", "0.1"),
            "--alpha has an effect with --rank-rule sapca",
        ),
        (("--group", "rows", "--insecure", "--gamma", "1"), "--gamma has an effect with --kernel"),
        (("--group", "rows", "--insecure", "--center", "stream"), "own, fleet or none"),
    ],
)
def test_bad_options_are_refused_before_anything_is_sent(root, tmp_path, arguments, said):
    """What is missing, and what has no effect."""
    table(tmp_path / "rows.csv")
    done = into(root, tmp_path / "rows.csv", *arguments)

    assert said in str(done.exception)
    assert not root.worker.node.ledger("rows").rows


@pytest.mark.slow
def test_rows_that_all_have_gaps_are_learnt(root, tmp_path):
    """As of a log of motes; where rows have one value each, none is, and the command says so."""
    rng = np.random.default_rng(1)
    table(tmp_path / "rows.csv", n=300)
    head, *lines = (tmp_path / "rows.csv").read_text().splitlines()
    left = rng.integers(3, size=len(lines)).tolist()
    for name, has in (("two.csv", False), ("one.csv", True)):
        rows = [
            ",".join(each if (i == one) == has else "" for i, each in enumerate(line.split(",")))
            for line, one in zip(lines, left, strict=True)
        ]
        (tmp_path / name).write_text("\n".join([head, *rows]) + "\n")
    options = ("--group", "rows", "--insecure", "--rank", 2, "--missing", "impute")

    assert 0 == into(root, tmp_path / "two.csv", *options).exit_code
    assert 300 == root.worker.node.ledger("rows").counts().learnt
    nothing = into(root, tmp_path / "one.csv", *options, "--node", "other")
    assert 1 == nothing.exit_code
    assert "none is learnt" in str(nothing.exception)
    assert 300 == root.worker.node.ledger("rows").counts().learnt
