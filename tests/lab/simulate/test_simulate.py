"""`submerge lab simulate`: what is asked reaches the engine, and what is found reaches a person."""

from __future__ import annotations

import inspect
import io
import json
import re
import shlex
from dataclasses import fields, replace
from functools import partial

import click
import pytest
from click.testing import CliRunner
from rich.console import Console

from submerge.client.node import ClientNode
from submerge.features import Matern, RandomFourier, plain
from submerge_files.console import units as spans
from submerge_lab.simulate import run as simulate_run
from submerge_lab.simulate.command import repeat_command
from submerge_lab.simulate.report import INVARIANTS, SHOWN, excerpt_of, print_findings
from submerge_lab.simulate.run import Findings, collect
from submerge_lab.simulator import PRESETS, SHARES, Faults, Plan, run
from submerge_operate import cli
from support.commands import shell

SMALL = ("--nodes", 4, "--fan-in", 2, "--depth", 2, "--hours", 0.5)


@pytest.fixture
def submerge(monkeypatch, capsys):
    """Run the command as a shell would: exit status, standard output, standard error."""
    return shell(monkeypatch, capsys, "lab", "simulate")


@pytest.fixture
def figures(submerge):
    """Run with --json; the object it prints."""

    def run(*arguments: object) -> dict:
        status, out, err = submerge(*SMALL, *arguments, "--json")
        assert (0, "") == (status, err)
        return json.loads(out)

    return run


class Clinging(ClientNode):
    """A client that goes on with its life under another parent: readings count twice."""

    def keeps_incarnation(self, old, new):
        return True


@pytest.fixture
def broken(monkeypatch):
    """Clients that break I1 as soon as an aggregator comes back with an empty disk."""
    monkeypatch.setattr(simulate_run, "run", partial(run, client=Clinging))
    return ("--nodes", 4, "--fan-in", 2, "--hours", 1, "--fault", "store_lost=2", "--loss", "1%")


# -- what is found -----------------------------------------------------------------


def test_json_says_it_all(figures):
    """One object, and every reading in it is counted or has a cause."""
    found = figures("--seeds", 3)

    promised = {"violations", "seeds", "coverage", "bytes_per_node_day", "angle", "seconds"}
    more = {"generated", "counted", "missing", "unattributed", "settled_s", "largest_report"}
    assert promised | more | {"staleness", "trace", "plan", "bound", "rates"} <= set(found)
    assert ([], 3, 1.0, None) == tuple(found[k] for k in ("violations", "seeds", "bound", "angle"))
    assert found["generated"] == found["counted"] + sum(found["missing"].values())
    assert 0 == found["unattributed"]
    assert ["bound", "max", "median"] == sorted(found["settled_s"])
    assert ["max", "p50", "p99"] == sorted(found["staleness"])
    assert (4, "swarm-1") == (found["plan"]["nodes"], found["plan"]["faults"])


def test_the_command_runs_what_the_engine_runs(figures):
    """The same seed, asked for in Python, delivers the same messages."""
    outcome = run(Plan(nodes=4, fan_in=2, depth=2, hours=0.5), 7)

    assert outcome.trace == figures("--seed", 7)["trace"]


@pytest.mark.slow
def test_the_result_does_not_depend_on_how_many_processes_ran_it(figures):
    """Seed for seed the same, in any number of jobs; another seed is another run."""
    alone, shared, other = (
        figures("--seeds", seeds, "--jobs", jobs) for seeds, jobs in ((3, 1), (3, 2), (2, 1))
    )
    for found in (alone, shared, other):
        assert found.pop("seconds") >= 0

    assert alone == shared
    assert alone["trace"] != other["trace"]


def test_a_rate_by_hand_leaves_the_rest_of_the_draw(figures):
    """What is not given is what the preset draws for that seed."""
    drawn = figures("--seed", 1, "--faults", "swarm-1")["rates"]
    amended = figures("--seed", 1, "--faults", "swarm-1", "--loss", "50%")["rates"]

    assert drawn | {"loss": 0.5} == amended


def test_a_rate_by_hand_is_all_that_goes_wrong(figures):
    """Without a preset, nothing else does; a length of outages brings outages."""
    rates = figures("--outage", "3h", "--duplicate", "2%", "--fault", "card-lost=1/d")["rates"]

    calm = {field.name: field.default for field in fields(Faults)}
    given = {"outage_s": 10800, "partition": 0.5, "duplicate": 0.02, "card_lost": 1 / 24}
    assert calm | given == rates


def test_no_faults_lose_nothing(figures):
    """Coverage is 1, and nothing is missing."""
    found = figures("--faults", "none")

    assert (1.0, {}) == (found["coverage"], found["missing"])


def test_real_subspaces_come_close_to_the_pooled_truth(figures):
    """Below a degree; causes and invariants are for sample ids alone, and say so."""
    found = figures("--dim", 16, "--rank", 3, "--hours", 2)

    assert 0 <= found["angle"] < 1
    assert (None, None) == (found["unattributed"], found["bound"])
    d = 16  # narrow, with 8 directions
    assert found["largest_report"] <= 2 * d * (d + 1) + 16 * d + 256 + 200


CURVED = ("--dim", 8, "--rank", 4, "--kernel", "gaussian")


def test_features_of_a_curve_come_close_to_the_pooled_truth(figures):
    """At a gamma that is given every reading is learnt; the largest report has two memories."""
    found = figures(*CURVED, "--gamma", 0.03, "--faults", "none")

    assert ([], 1.0) == (found["violations"], found["coverage"])
    assert 0 <= found["angle"] < 0.1
    assert {"kind": "orthogonal", "features": 64, "seed": 0} == {
        name: found["plan"]["features"][name] for name in ("kind", "features", "seed")
    }
    (d, k), (dim, features_k) = (8, 8), (64, 9)
    both = 4 * d * k + 8 * (2 * d + k) + 4 * dim * features_k + 8 * (2 * dim + features_k)
    assert both < found["largest_report"] <= both + 24 + 256 + 300


@pytest.mark.slow
@pytest.mark.parametrize("more", [(), ("--learn-scaling",)])
def test_a_fleet_settles_its_gamma_first(figures, more):
    """Readings that measured it are counted as well; what is learnt comes close to its truth."""
    found = figures(*CURVED, *more, "--faults", "none", "--hours", 1.5)

    assert [] == found["violations"]
    assert 1 == found["coverage"]
    assert 0 <= found["angle"] < 0.5
    assert None is found["plan"]["features"]["gamma"]


def test_sample_ids_may_be_measured_first(figures):
    """Without a dimension, too: each id is followed while it only measures."""
    small = "--nodes", 3, "--depth", 1, "--hours", 2
    found = figures(*small, "--learn-scaling", "--faults", "network")

    assert ([], 1.0) == (found["violations"], found["coverage"])
    assert found["plan"]["learns_scaling"]


@pytest.mark.slow
def test_a_kernel_seed_is_the_same_in_another_process(figures):
    """A map goes with the plan."""
    alone, shared = (figures(*CURVED, "--seeds", 2, "--jobs", jobs) for jobs in (1, 2))

    assert alone["trace"] == shared["trace"]


def test_a_person_reads_of_features(submerge):
    """How many of them, and how large a report may be."""
    _, out, _ = submerge(*SMALL, *CURVED, "--gamma", 0.03, "--faults", "none")

    said = " ".join(out.split())
    assert "within 4,128 and 300 of scores (64 features of 8 channels, 9 and 8 directions)" in said


def test_where_readings_fade_there_is_no_truth_to_be_near(submerge):
    """What is pooled weighs all alike, and says so."""
    _, out, _ = submerge(*SMALL, *CURVED, "--half-life", "1h", "--faults", "none")

    assert "none: readings fade" in out


def test_a_person_reads_every_figure(submerge):
    """Each invariant with its meaning, each cause, each cost; nothing on standard error."""
    status, out, err = submerge(*SMALL, "--seeds", 4, "--loss", "5%", "--kill", 0.5)

    assert (0, "") == (status, err)
    for name, meaning in INVARIANTS.items():
        assert re.search(rf"^{name} +0  {re.escape(meaning)}", out, re.MULTILINE)
    assert "of 4 seeds: at most 3/4 = 0.75 of all, by the rule of three" in out
    assert re.search(r"^ +0 +0.00%  unattributed", out, re.MULTILINE)
    first = [line.split()[0] for line in out.splitlines() if line and line[0].isalpha()]
    for name in ("seeds", "fleet", "faults", "convergence", "traffic", "largest", "trace", "time"):
        assert name in first
    assert "loss 5%" in out


def test_a_person_reads_of_real_subspaces(submerge):
    """An angle, the bound of a report, and what was audited."""
    _, out, _ = submerge(*SMALL, "--dim", 16, "--rank", 3, "--faults", "none")

    assert "end state checked" in out
    assert "within 2d(d+1) + 16d + 256 = 1,056" in out
    assert "degrees at most between model and exact PCA of all readings" in out


@pytest.mark.parametrize("width", [30, 80])
def test_the_tables_fit(width):
    """No line is longer than the terminal, be it narrow."""
    console = Console(width=width, record=True, file=io.StringIO())
    print_findings(console, collect(Plan(nodes=2, depth=1, hours=0.2), range(2)))

    text = console.export_text()
    assert max(map(len, text.splitlines())) <= width
    assert all(name in text for name in INVARIANTS)


def test_every_invariant_has_a_meaning():
    """Those that the oracle knows."""
    from submerge_lab.simulator.oracles import oracle

    assert list(INVARIANTS) == re.findall(r"^(I\d+) +", str(oracle.__doc__), re.MULTILINE)


def test_shares_are_what_faults_say_are_shares():
    """A share that is read as a rate would be taken in silence for something else."""
    entries = re.findall(r"^(\w[\w, ]*) : (\w+)", inspect.cleandoc(Faults.__doc__), re.M)
    shares = [name for names, first in entries for name in names.split(", ") if first in WORDS]

    assert sorted(SHARES) == sorted(shares)


WORDS = ("Share", "Shares", "Chance")


# -- violations --------------------------------------------------------------------


@pytest.mark.slow
def test_a_violation_is_told_with_what_led_to_it(submerge, broken):
    """Status 1; the seeds, the lines before it up to the one that says it, the command."""
    status, out, _ = submerge(*broken, "--seeds", 8)

    assert 1 == status
    named = re.findall(r"^seed (\d+) breaks (I\d) at \d+ s: .+", out, re.MULTILINE)
    assert "I1" in dict(named).values()
    assert "rule of three" not in out
    _, _, story = out.partition(f"what led to {named[0][1]} in seed {named[0][0]}")
    lines = story.splitlines()[1:]
    assert " !! I1: " in lines[-3]
    assert 2 < len(lines) <= SHOWN + 2
    assert lines[-1].startswith("submerge lab simulate --nodes 4 ")
    assert lines[-1].endswith(
        f"--faults none --loss 0.01 --fault store_lost=2 --seed {named[0][0]}"
    )


@pytest.mark.slow
def test_a_violation_in_json(submerge, broken):
    """Status 1 and one object; the command in it runs into the same violation."""
    status, out, err = submerge(*broken, "--seeds", 8, "--json")
    found = json.loads(out)

    assert (1, "", None) == (status, err, found["bound"])
    first = found["violations"][0]
    assert {"seed", "invariant", "what"} == set(first)
    assert " !! " in found["transcript"][-1]
    status, out, _ = submerge(*shlex.split(found["repeat"])[3:], "--json")
    assert 1 == status
    assert first == json.loads(out)["violations"][0]


def test_what_a_seed_lacks_another_does_not_make_up_for():
    """A reading too many here and one too few there are two that nobody can explain."""
    outcome = run(Plan(nodes=2, depth=1, hours=0.2, faults="none"), 0)
    off = [Off(outcome, by) for by in (-1, 1)]

    assert 2 == Findings(Plan(), off, 0.0).unattributed


class Off:
    """An outcome that counts some readings more or less."""

    def __init__(self, outcome, by):
        self.generated, self.counted = outcome.generated, outcome.counted + by
        self.missing = outcome.missing


def test_an_excerpt_is_of_the_nodes_that_are_named():
    """Their lines, and what befell others; not what others heard, nor what came later."""
    lines = [
        *["1.0 c2       hears Answer c2/903c#1 reason=ACK"] * 99,
        "2.0 c1       dies",
        "3.0 a1.0     hears Report c1/903c#1 pinned=c2",
        "4.0 c2       write fails",
        "4.1 c1       hears Model(group='room')",
        "4.2 c10      hears Hello",
        "5.0 root     !! I4: 3 readings of c1 are missing without a cause",
        "6.0 c1       starts",
    ]

    excerpt = excerpt_of(lines)
    assert ["2.0", "3.0", "4.0", "5.0"] == [line.split()[0] for line in excerpt.lines]
    assert len(lines) - 1 - 4 == excerpt.left_out
    assert SHOWN == len(excerpt_of([*lines[99:101] * 99, lines[-2]]).lines)
    assert [] == excerpt_of(lines[:-2]).lines


def test_the_command_that_repeats_says_all_of_a_plan():
    """Nothing is left to a default that may change."""
    plan = Plan(
        nodes=9,
        hours=0.1,
        reading_every_s=0.5,
        dim=8,
        rank=2,
        oversample=1,
        faults="kills",
        given=(("late", 0.1), ("loss", 1 / 3), ("outage_s", 90.5)),
    )

    assert (
        "submerge lab simulate --nodes 9 --fan-in 3 --depth 3 --hours 0.1 --reading-every 0.5s"
        " --report-every 10m --faults kills --fault late=0.1 --loss 0.3333333333333333"
        " --outage 90.5s --dim 8 --rank 2 --oversample 1 --seed 4"
    ) == repeat_command(plan, 4)


@pytest.mark.slow
def test_the_command_that_repeats_says_all_of_a_kernel(figures):
    """Run again, it delivers the same messages."""
    options = (*CURVED[:4], "--kernel", "matern", "--nu", 2.5, "--map", "fourier-cos")
    found = figures(*options, "--features", 33, "--map-seed", 5)
    plan = Plan(nodes=4, fan_in=2, depth=2, hours=0.5, dim=8, rank=4)
    map_ = RandomFourier(Matern(nu=2.5), 33, "fourier-cos", 5)

    assert plain(map_.spec()) == found["plan"]["features"]
    words = shlex.split(repeat_command(replace(plan, features=map_), 0))
    kernel = "--kernel matern --features 33 --gamma auto --map fourier-cos --map-seed 5 --nu 2.5"
    assert kernel in " ".join(words)
    assert found["trace"] == figures(*words[3:])["trace"]


# -- what is asked -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("read", "text", "value"),
    [
        (spans.duration, "3h", 10800),
        (spans.duration, "90s", 90),
        (spans.duration, "5m", 300),
        (spans.duration, "2d", 172800),
        (spans.duration, "1.5 h", 5400),
        (spans.duration, "50ms", 0.05),
        (spans.share, "5%", 0.05),
        (spans.share, "0.05", 0.05),
        (spans.share, "100%", 1),
        (spans.share, ".5", 0.5),
        (spans.share, "1e-3", 0.001),
        (spans.rate, "0.5", 0.5),
        (spans.rate, "3/h", 3),
        (spans.rate, "12/d", 0.5),
    ],
)
def test_spans_are_read(read, text, value):
    """As people write them."""
    assert value == pytest.approx(read(text), rel=1e-15)


@pytest.mark.parametrize(
    ("read", "text"),
    [
        *((spans.duration, text) for text in ("90", "h", "-3h", "3 weeks", "1e999d", "nan", "")),
        *((spans.share, text) for text in ("5", "101%", "-1%", "nan", "%", "five")),
        *((spans.rate, text) for text in ("-1", "1/s", "1e9", "inf", "often")),
    ],
)
def test_what_is_no_span_is_refused(read, text):
    """With what came, and an example of what was expected."""
    with pytest.raises(click.BadParameter, match=re.escape(f"got {text!r}")):
        read(text)


@pytest.mark.parametrize("seconds", [0, 0.05, 1.5, 90, 120, 5400, 10800, 172800.0, 1 / 3])
def test_a_duration_that_is_told_reads_back(seconds):
    """To the last bit."""
    assert seconds == spans.duration(spans.span_text(seconds))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--nodes", 0], "'--nodes': 0 is not in the range"),
        (["--fan-in", 1], "'--fan-in': 1 is not in the range"),
        (["--depth", 7], "'--depth': 7 is not in the range 1<=x<=6"),
        (["--hours", 0], "over 0 and at most 8784, got 0"),
        (["--hours", "nan"], "got nan"),
        (["--reading-every", "0s"], "at least 0.01s, got 0s"),
        (["--reading-every", "30"], "a time such as 90s, 5m, 3h or 2d, got '30'"),
        (["--loss", 5], "a share such as 5% or 0.05, got '5'"),
        (["--kill", -1], "events an hour, from 0 to 3600, such as 0.5 or 2/d, got '-1'"),
        (["--faults", "swarm"], "'swarm'"),
        (["--fault", "cardlost=1"], "did you mean 'card_lost'?"),
        (["--fault", "xyzzy=1"], "there is no fault 'xyzzy'"),
        (["--fault", "move"], "expected --fault NAME=VALUE, got 'move'"),
        (["--fault", "move=often"], "--fault move: expected events an hour"),
        (["--fault", "late=2"], "--fault late: expected a share"),
        (["--fault", "slow_s=2"], "--fault slow_s: expected a time"),
        (["--loss", 0.1, "--fault", "loss=0.1"], "expected fault loss once"),
        (["--down", "5m"], "add --kill, or --faults with a preset"),
        (["--fault", "redeliver=1"], "add --broker"),
        (["--dim", 8], "add --rank 8"),
        (["--rank", 3], "--rank is for real subspaces"),
        (["--dim", 8, "--rank", 4], "got 4 + 5: add --oversample 4"),
        (["--dim", 8, "--rank", 9], "got 9 + 5: lower --rank"),
        (["--kernel", "gaussian"], "--kernel is for real subspaces"),
        (["--gamma", 1], "--gamma has an effect with --kernel only"),
        ([*CURVED, "--features", 33], "expected an even number, got 33"),
        (
            [*CURVED, "--features", 8],
            "at most --features 8 together, got 4 + 5: add --oversample 4",
        ),
        ([*CURVED, "--gamma", -1], "expected a number above 0, or auto, got '-1'"),
        (["--seeds", 0], "'--seeds': 0"),
        (["--jobs", 0], "'--jobs': 0"),
        (["--frobnicate"], "--frobnicate"),
    ],
)
def test_a_bad_option_is_one_line(submerge, options, words):
    """Exit status 2, nothing on standard output: what was expected, what came."""
    status, out, err = submerge(*options)

    assert (2, "") == (status, out)
    assert 1 == err.count("\n")
    assert words in err


def test_every_fault_and_preset_can_be_asked_for():
    """Help names them all, and shows an example."""
    done = CliRunner().invoke(cli.submerge, ["lab", "simulate", "--help"])
    words = set(re.findall(r"[\w-]+", done.output))

    assert 0 == done.exit_code
    assert "Example: submerge lab simulate" in done.output
    assert set(PRESETS) <= words
    for field in fields(Faults):
        flag = "--" + field.name.removesuffix("_s").replace("_", "-")
        assert {field.name, flag} & words, field.name
