"""`submerge demo`: the fleet counts right, the watch keeps its rule, the command says it all."""

from __future__ import annotations

import io
import json
import sys

import numpy as np
import pytest
from click.testing import CliRunner
from rich.console import Console

from submerge import Channel, Schema, UsageError, spe
from submerge_fleet import cli
from submerge_fleet.demo_client import Scores, wire_bytes
from submerge_fleet.demo_fleet import Fleet
from submerge_fleet.demo_live import fleet_table
from submerge_fleet.demo_report import picture
from submerge_fleet.demo_run import Demo, Outcome, Settings
from submerge_fleet.demo_verdict import judged
from submerge_fleet.demo_watch import ENOUGH, MARGIN, WINDOW, Alarm, Limits, Watch
from submerge_fleet.room import Fault

CHANNELS = tuple(Channel(f"mote{mote:02d}.{q}") for mote in (1, 2, 3) for q in ("a", "b"))
SOUND = np.zeros(len(CHANNELS), dtype=bool)


def gaussian(n, dim=6, *, seed=0):
    """Rows with three strong directions and a little noise."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, 3)) @ rng.standard_normal((3, dim)) + 0.1 * rng.standard_normal(
        (n, dim)
    )


def small_fleet(clients=6, *, report_every=300):
    """Six clients under two aggregators, six channels."""
    return Fleet(Schema(CHANNELS), clients=clients, rank=3, oversample=2, report_every=report_every)


def finished(settings) -> tuple[Demo, Outcome]:
    """A demo, run to its end."""
    demo = Demo(settings)
    for _ in demo.rounds():
        pass
    return demo, demo.outcome()


@pytest.fixture(scope="module")
def short():
    """Two days of the demo, and its outcome."""
    return finished(Settings(seed=1, days=2.0))


@pytest.fixture
def submerge():
    """Run the group as a program does, in this process."""
    return lambda *arguments: CliRunner().invoke(cli.submerge, ["demo", *map(str, arguments)])


# -- the fleet -----------------------------------------------------------------------


@pytest.mark.parametrize("clients", [1, 5, 8])
def test_every_row_is_counted_once(clients):
    """However often clients reported, the root's weight and mean are those of all rows."""
    fleet, rows = small_fleet(clients), gaussian(2000)
    for start in range(0, 2000, fleet.round_length):
        fleet.hear(rows[start : start + fleet.round_length], SOUND)
    model = fleet.finish()

    assert model.weight == 2000
    assert np.allclose(rows.mean(axis=0), model.mean, atol=1e-12)
    assert model.energy == pytest.approx(((rows - rows.mean(axis=0)) ** 2).sum(), rel=1e-12)


def test_rows_are_scored_before_they_are_learnt():
    """SPE comes from the model of the rounds before, not from one that knows the rows."""
    fleet, rows = small_fleet(1, report_every=96), gaussian(4 * 96 + 96)
    _, first = fleet.hear(rows[:96], SOUND)
    for start in range(96, 4 * 96, 96):
        fleet.hear(rows[start : start + 96], SOUND)
    before = fleet.clients[0].model
    filled, scores = fleet.hear(rows[-96:], SOUND)

    assert np.isnan(first.spe).all()
    assert np.allclose(spe(filled, before), scores.spe)
    assert fleet.clients[0].model is not before
    assert np.allclose(scores.residual.sum(axis=1), scores.spe)


def test_a_muted_channel_does_not_change_the_scores():
    """What is muted reads as missing: whatever it says, the rest is judged alike."""
    results = []
    for wild in (0.0, 1e4):
        fleet, rows = small_fleet(1), gaussian(5 * 96)
        for start in range(0, 4 * 96, 96):
            fleet.hear(rows[start : start + 96], SOUND)
        rows[4 * 96 :, 2] += wild
        muted = SOUND.copy()
        muted[2] = True
        results.append(fleet.hear(rows[4 * 96 :], muted)[1])

    assert np.allclose(results[0].spe, results[1].spe)


def test_gaps_are_filled_and_counted():
    """What is learnt has no NaN, and every gap is counted, by one client each."""
    fleet, rows = small_fleet(), gaussian(4 * 96)
    gaps = np.random.default_rng(1).random(rows.shape) < 0.1
    rows[gaps] = np.nan
    learnt = [fleet.hear(rows[start : start + 96], SOUND)[0] for start in range(0, 4 * 96, 96)]

    assert np.isfinite(learnt).all()
    assert sum(client.filled for client in fleet.clients) == gaps.sum()


def test_bytes_follow_the_wires_formula():
    """4 d k + 8 (d + k) + 256 a report, on every link up, and a model down to each node."""
    fleet = small_fleet()
    fleet.hear(gaussian(96), SOUND)
    model = fleet.finish()

    assert wire_bytes(model) == 4 * 6 * 5 + 8 * (6 + 5) + 256
    assert [client.bytes_up for client in fleet.clients] == [wire_bytes(model)] * 6
    assert [node.bytes_up for node in fleet.aggregators] == [wire_bytes(model)] * 2
    assert fleet.bytes_down == 8 * wire_bytes(model)
    assert all(client.model.basis.dtype == np.float32 for client in fleet.clients)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"clients": 0}, "at least one client, got 0"),
        ({"rank": 5}, "2 spare directions in 6 channels, got 5"),
    ],
)
def test_a_fleet_that_cannot_be_is_refused(change, said):
    """Said with the numbers."""
    usual = {"clients": 2, "rank": 3, "oversample": 2, "report_every": 100}
    with pytest.raises(UsageError, match=said):
        Fleet(Schema(CHANNELS), **usual | change)


# -- the watch -----------------------------------------------------------------------


def scores(n, *, loud=(), size=1.0):
    """Rows whose residuals are about 1, and `size` in the loud channels."""
    residual = np.random.default_rng(n).uniform(0.5, 1.0, (n, len(CHANNELS)))
    residual[:, list(loud)] = size**2
    total = residual.sum(axis=1)
    return Scores(total, total, residual)


def settled():
    """A watch that has its limits: about 1 for every channel."""
    watch = Watch(CHANNELS, settle=400)
    for _ in range(4):
        watch.see(scores(100))
    return watch


def test_a_mote_is_singled_out_by_enough_loud_rows():
    """Not by one row less, and by the channel that was loud."""
    watch = settled()
    watch.see(scores(ENOUGH - 1, loud=[3], size=2 * MARGIN))
    assert watch.alarms == []

    watch.see(scores(1, loud=[3], size=2 * MARGIN))
    assert watch.alarms == [Alarm(2, "b", 400 + ENOUGH)]
    assert list(watch.muted) == [False, False, True, True, False, False]


def test_a_mote_is_singled_out_once():
    """Muted channels are not judged: the next alarm is another mote's."""
    watch = settled()
    watch.see(scores(WINDOW, loud=[2, 3], size=5 * MARGIN))
    watch.see(scores(WINDOW, loud=[2, 3, 4], size=5 * MARGIN))

    assert [alarm.mote for alarm in watch.alarms] == [2, 3]


def test_what_is_loud_everywhere_but_not_enough_is_weather():
    """Rows over the limit of SPE, no channel over its own by the margin: no alarm."""
    watch = settled()
    watch.see(scores(2 * WINDOW, loud=range(6), size=0.9 * MARGIN))

    assert watch.over_spe == 2 * WINDOW
    assert watch.alarms == []


def test_rare_loud_rows_are_forgotten():
    """A channel that is loud one row in ten never has enough within the window."""
    watch = settled()
    for _ in range(WINDOW):
        watch.see(scores(9))
        watch.see(scores(1, loud=[0], size=9 * MARGIN))

    assert watch.alarms == []


def test_limits_need_scores():
    """A settling time without a model is refused, not taken for silence."""
    with pytest.raises(UsageError, match="got none: settle longer"):
        Limits.measured([Scores.unknown(5, 6)])


def test_verdicts_match_alarms_with_the_truth():
    """Found while it held or soon after; missed; and whatever else was said is false."""
    faults = [
        Fault(1, "light", "stuck", 100, 200),
        Fault(2, "temperature", "dying", 100, 200),
        Fault(3, "voltage", "offset", 100, 200, -0.1),
    ]
    early, late = Alarm(1, "light", 90), Alarm(3, "humidity", 201 + WINDOW)
    soon = Alarm(2, "voltage", 200 + WINDOW)

    one, two, three, *false = judged(faults, [early, soon, late])
    assert [one.outcome, two.outcome, three.outcome] == ["missed", "found", "missed"]
    assert two.named_right
    assert two.delay_h == pytest.approx((100 + WINDOW) * 31 / 3600)
    assert [(v.mote, v.outcome, v.alarm) for v in false] == [
        (1, "false", early),
        (3, "false", late),
    ]


# -- the whole ------------------------------------------------------------------------


@pytest.mark.slow
def test_the_merged_model_is_as_good_as_exact_pca(short):
    """Two days in: within 1 % of the optimum, and the leading directions within 3 degrees."""
    accuracy = short[1].accuracy

    assert 1 - 1e-9 <= accuracy.ratio <= 1.01
    assert accuracy.angle_deg < 3
    assert accuracy.energy_kept > 0.98
    # A merged sigma never overstates.
    assert all(m <= e * (1 + 1e-6) for m, e in zip(accuracy.merged, accuracy.exact, strict=False))


@pytest.mark.slow
def test_the_picture_fits_the_terminal(short):
    """At 80 and at 130 columns no line is longer, and each fault has its own."""
    demo, outcome = short
    for width in (80, 130):
        drawn = picture(outcome, demo.history, demo.watch.limits.spe, width=width)
        assert max(len(line.plain) for line in drawn) <= width
        text = "\n".join(line.plain for line in drawn)
        assert all(fault.channel in text for fault in demo.room.faults)


@pytest.mark.slow
def test_the_live_table_has_a_line_for_every_node(short):
    """Eight clients, two aggregators, the root, within 80 columns."""
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(fleet_table(short[0], width=80))
    text = console.export_text()

    assert all(f"client-{i}" in text for i in range(1, 9))
    assert "aggregator-2" in text
    assert "root" in text
    assert "…" not in text


@pytest.mark.slow
def test_a_clients_memory_is_within_its_bound(short):
    """MATHEMATICS.md: 8 d (3 k + b + 4) + 48 (k + b + 1)^2 + 64 kB, beside one block's scores."""
    d, k, b = 216, 20, short[0].fleet.clients[0].engine.block_size
    bound = 8 * d * (3 * k + b + 4) + 48 * (k + b + 1) ** 2 + 64_000

    assert short[1].memory.rest <= short[1].memory.peak <= bound


@pytest.mark.slow
def test_json_is_one_object_and_the_same_for_the_same_seed(submerge):
    """All figures, on standard output alone; only time and memory may differ."""
    first, second = (submerge("--days", 1, "--seed", 4, "--json") for _ in range(2))
    assert (first.exit_code, first.stderr) == (0, "")
    one, two = json.loads(first.stdout), json.loads(second.stdout)

    assert {"accuracy", "traffic", "memory", "verdicts", "found", "missed", "false"} < set(one)
    assert one["settings"]["seed"] == 4
    assert one["snapshots"] == 2787
    for measured in ("seconds", "memory"):
        assert one.pop(measured)
        two.pop(measured)
    assert one == two


@pytest.mark.slow
def test_the_command_tells_a_person(submerge):
    """Without a terminal: nothing live, a picture in text, and a line for each figure."""
    done = submerge("--days", 1.5, "--clients", 3, "--rank", 4)

    assert (done.exit_code, done.stderr) == (0, "")
    names = [line.split()[0] for line in done.stdout.splitlines() if line]
    for name in ("room", "fleet", "accuracy", "angle", "traffic", "memory", "motes", "limits"):
        assert name in names
    assert "3 clients, 1 aggregator, a root" in done.stdout
    assert "█" in done.stdout


@pytest.mark.slow
def test_plot_writes_a_png(submerge, tmp_path):
    """A picture, and its name on the way out."""
    path = tmp_path / "demo.png"
    done = submerge("--days", 1, "--plot", path, "--quiet")

    assert done.exit_code == 0
    assert path.read_bytes().startswith(b"\x89PNG")
    assert str(path) in done.stdout


def test_without_matplotlib_a_picture_is_refused_at_once(submerge, monkeypatch, tmp_path):
    """Before the work, in one line that names the extra."""
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    monkeypatch.delitem(sys.modules, "submerge_fleet.demo_plot", raising=False)
    done = submerge("--plot", tmp_path / "demo.png")

    assert isinstance(done.exception, UsageError)
    assert "pip install 'submerge[plot]'" in str(done.exception)


@pytest.mark.parametrize(
    "arguments", [("--days", 0.5), ("--clients", 0), ("--rank", 0), ("--seed", -1)]
)
def test_bad_options_are_refused(submerge, arguments):
    """Status 2, and the range that was expected."""
    done = submerge(*arguments)

    assert done.exit_code == 2
    assert "is not in the range" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 100])
def test_two_weeks_find_most_faults_and_few_others(seed):
    """The default run: most of six faults found and named right, hardly a false alarm."""
    _, outcome = finished(Settings(seed=seed))
    found = [verdict for verdict in outcome.verdicts if verdict.outcome == "found"]

    assert len(found) >= 4
    assert sum(verdict.named_right for verdict in found) >= len(found) - 1
    assert outcome.count("false") <= 2
    assert outcome.accuracy.ratio <= 1.01
    traffic = outcome.traffic
    assert traffic.clients_up + traffic.aggregators_up < 0.25 * traffic.raw
