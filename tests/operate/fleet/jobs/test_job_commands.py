"""`submerge jobs` at a root: opened, followed, answered, listed, cancelled."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator

import numpy as np
import pytest

from submerge.jobs.job import Leaver
from submerge.jobs.kind import JobSetting
from submerge.jobs.kinds import KINDS, settings_of
from submerge.schema import Scaling
from submerge_operate.fleet.jobs.command import kind_command
from submerge_operate.fleet.jobs.fleet_jobs import FleetJobs
from support.commands import shell, stands_at_its_socket
from support.house import SCHEMA, House
from support.jobbed import JobFleet, outcome
from support.nodes import GROUP

ROWS = np.random.default_rng(0).normal(size=(40, SCHEMA.dim))


@pytest.fixture
def house(tmp_path, monkeypatch) -> Iterator[House]:
    with House(tmp_path) as house:
        house.hears("pump-1", ROWS)
        stands_at_its_socket(house, monkeypatch)
        yield house


@pytest.fixture
def run(house, monkeypatch, capsys):
    """Run a command at the house's store."""
    ran = shell(monkeypatch, capsys)
    return lambda *given: ran(*given, "--store", house.store)


def test_an_answer_is_waited_for_and_printed(house, run, tmp_path):
    """And written, in each form that is asked for."""
    JobFleet(house, at_once=True)
    table, arrays = tmp_path / "centers.csv", tmp_path / "centers.npz"
    ran = run(
        "jobs", "kmeans", "--clusters", 3, "--held-out", "25%", "--out", table, "--out", arrays
    )

    assert 0 == ran.status, ran.err
    assert "kmeans clusters=3 held_out=0.25 of group room: job-" in ran.out
    assert "nodes      3: pump-1, pump-2, pump-3" in ran.out
    (view,) = house.server.board.views()
    expected = outcome(job_of(house)).answer
    with table.open() as file:
        heading, *rows = csv.reader(file)
    assert ["cluster", "rows", *(f"mote-{i} [°C]" for i in range(SCHEMA.dim))] == heading
    found = np.array([list(map(float, row)) for row in rows])
    assert np.array_equal(expected["counts"], found[:, 1])
    assert np.allclose(expected["centers"], found[:, 2:], rtol=1e-12)
    with np.load(arrays) as archive:
        assert np.array_equal(expected["centers"], archive["centers_scaled"])
        assert view.id == json.loads(str(archive["job"]))["id"]


def job_of(house: House):
    """The one job of a house, as its file has it."""
    from submerge_aggregator.jobs.record import unpacked

    (view,) = house.server.board.views()
    return unpacked(house.server.board.piece(view.id, 0)).job


def test_an_answer_is_one_json_object(house, run):
    JobFleet(house, at_once=True)
    ran = run("jobs", "moments", "--json")
    found = json.loads(ran.out)

    assert ("moments", GROUP, list(SCHEMA.names)) == tuple(
        found[key] for key in ("kind", "group", "channels")
    )
    assert np.allclose(outcome(job_of(house)).answer["mean"], found["answer"]["mean"])


def test_places_are_in_the_units_of_the_channels(tmp_path, monkeypatch, capsys):
    """Rows of a fleet are scaled; variances are squares of a unit."""
    scaling = Scaling(tuple(10.0 * i for i in range(6)), tuple(2.0 + i for i in range(6)))
    scaled = type(SCHEMA)(SCHEMA.channels, scaling=scaling)
    with House(tmp_path, schema=scaled) as house:
        stands_at_its_socket(house, monkeypatch)
        JobFleet(house, at_once=True)
        ran = shell(monkeypatch, capsys)("jobs", "moments", "--json", "--store", house.store)
        answer = outcome(job_of(house)).answer
    found = json.loads(ran.out)["answer"]
    offset, scale = np.array(scaling.offset), np.array(scaling.scale)

    assert np.allclose(answer["mean"] * scale + offset, found["mean"])
    assert np.allclose(answer["variance"] * scale**2, found["variance"])
    assert np.allclose(answer["mean"], found["mean_scaled"])
    assert answer["count"].tolist() == found["count"]


def test_a_failed_job_is_status_1_with_its_reason(house, run, tmp_path):
    """No file is written."""
    JobFleet(house, at_once=True, failure="no node takes part")
    ran = run("jobs", "moments", "--out", tmp_path / "answer.npz")

    assert 1 == ran.status
    assert ran.err.splitlines()[-1].endswith("failed: no node takes part")
    assert not (tmp_path / "answer.npz").exists()


def test_ctrl_c_ends_the_command_and_not_the_job(house, run, monkeypatch):
    """It says how to end the job."""
    fleet = JobFleet(house)

    def pressed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(FleetJobs, "follow", pressed)
    ran = run("jobs", "moments")
    (name,) = fleet.open_jobs

    said = f"{name} goes on: `submerge jobs cancel {name}` ends it"
    assert (130, said) == (ran.status, ran.err.strip())


def test_without_waiting_the_job_goes_on(house, run):
    """Its name is printed: `show`, `answer` and `cancel` take it, or a beginning of it."""
    fleet = JobFleet(house)
    ran = run("jobs", "kmeans", "--clusters", 3, "--no-wait")
    (name,) = fleet.open_jobs

    assert (0, True) == (ran.status, ran.out.startswith(f"{name} is open"))
    fleet.goes_on(name, "lloyd", 4)
    assert "round 4 (lloyd), 3 nodes" in run("jobs", "show", name).out
    assert 2 == run("jobs", "answer", name).status
    fleet.ends(name, left={"pump-2": Leaver("silent", 0)}, declined={"pump-9": "no rows"})
    shown = run("jobs", "show", name[:8]).out
    assert "left       1: pump-2 (silent)" in shown
    assert "no part    1: pump-9 (no rows)" in shown
    assert "clusters   3, of" in run("jobs", "answer", name).out


def test_what_a_job_is_opened_with(house, run):
    """Each option reaches the job."""
    fleet = JobFleet(house)
    run(
        *("jobs", "kmeans", "--clusters", 3, "--seed", 7, "--tolerance", 0.01, "--no-exact"),
        *("--least", 2, "--within", "2h", "--no-wait"),
    )
    (job,) = fleet.open_jobs.values()

    assert {"clusters": 3, "seed": 7, "tolerance": 0.01} == job.settings
    assert (False, 2, 7200.0) == (job.exact, job.least, job.job_s)


def test_jobs_are_listed(house, run):
    fleet = JobFleet(house)
    assert "no job has been opened here" in run("jobs").out
    run("jobs", "kmeans", "--clusters", 3, "--no-wait")
    (name,) = fleet.open_jobs
    fleet.ends(name)
    table = run("jobs").out

    assert name in table
    assert "done in 5 rounds" in table
    assert [name] == [view["id"] for view in json.loads(run("jobs", "--json").out)]


def test_a_job_is_cancelled_after_a_yes(house, run, monkeypatch):
    fleet = JobFleet(house)
    run("jobs", "kmeans", "--clusters", 3, "--no-wait")
    (name,) = fleet.open_jobs
    monkeypatch.setattr("click.confirm", lambda *_, **__: False)

    assert (1, [name]) == (run("jobs", "cancel", name).status, [*fleet.open_jobs])
    assert (0, []) == (run("jobs", "cancel", name, "--yes").status, [*fleet.open_jobs])
    assert "cancelled" in run("jobs").out
    assert 2 == run("jobs", "cancel", name, "--yes").status


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (("kmeans",), "--clusters"),
        (("kmeans", "--clusters", "many"), "--clusters"),
        (("kmeans", "--clusters", 0), "clusters must be"),
        (("kmeans", "--clusters", 3, "--within", "0s"), "--within"),
        (("moments", "--within", "90d"), "--within is over 0 and at most 7d, got 90 d"),
        (("kmeans", "--clusters", 3, "--group", "hall"), "no group hall"),
        (("kmeans", "--clusters", 3, "--out", "answer.model"), "gives no model"),
        (("kmeans", "--clusters", 3, "--no-wait", "--out", "a.npz"), "--no-wait"),
        (("moments", "--plot", "a.png"), "--plot draws answers of kmeans"),
        (("moments", "--columns", "a*"), "--columns is for FILEs"),
        (("moments", "--unscaled"), "--unscaled is for FILEs"),
        (("moments", "--files"), "expected FILEs"),
        (("moment",), "moment"),
        (("show", "job-0"), "none of that name"),
        (("answer", "job-0"), "none of that name"),
    ],
)
def test_bad_input_is_one_line_and_status_2(house, run, given, why):
    """And no job is opened."""
    fleet = JobFleet(house, at_once=True)
    ran = run("jobs", *given)

    assert (2, 1) == (ran.status, len(ran.err.splitlines())), ran.err
    assert why in ran.err
    assert {} == fleet.open_jobs
    assert [] == house.server.board.views()


def test_a_file_in_the_way_is_not_replaced(house, run, tmp_path):
    """A table takes the place of a table only, before a job is opened."""
    JobFleet(house, at_once=True)
    target = tmp_path / "readings.csv"
    target.write_text("temp,flow\n1,2\n")
    ran = run("jobs", "kmeans", "--clusters", 3, "--out", target)

    assert (2, "temp,flow\n1,2\n") == (ran.status, target.read_text())
    target.write_text("cluster,rows,temp\n")
    assert 0 == run("jobs", "kmeans", "--clusters", 3, "--out", target).status
    assert target.read_text().startswith("cluster,rows,mote-0")


def test_arrays_of_others_are_not_replaced(house, run, tmp_path):
    """An archive of arrays takes the place of an answer only."""
    JobFleet(house, at_once=True)
    target, cut = tmp_path / "arrays.npz", tmp_path / "cut.npz"
    np.savez(target, centers=np.eye(2))
    cut.write_bytes(target.read_bytes()[:40])
    for path in (target, cut):
        before = path.read_bytes()
        ran = run("jobs", "kmeans", "--clusters", 3, "--out", path)
        assert (2, before) == (ran.status, path.read_bytes())
        assert "is no answer of a job" in ran.err

    target.unlink()
    for _ in range(2):
        assert 0 == run("jobs", "kmeans", "--clusters", 3, "--out", target).status


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_has_an_option_for_each_of_its_settings(run, kind):
    """From its own list: a new kind has a command without code here. No two options have a name."""
    command = kind_command(kind)
    options = [each for option in command.params for each in option.opts]
    settings = {option.name for option in command.params if option.name.startswith("setting_")}

    assert len(options) == len({*options})
    assert {f"setting_{each.name}" for each in settings_of(kind)} == settings
    assert 0 == run("jobs", kind, "--help").status


def test_a_setting_whose_name_is_taken_has_that_of_its_kind_before_it(monkeypatch):
    """Both options work: a setting of some kind may be called as an option of all is."""
    listed = (*KINDS["moments"].listed, JobSetting("columns", "whole", "How many.", "none"))
    monkeypatch.setattr(KINDS["moments"], "listed", listed)
    context = kind_command("moments").make_context(
        "moments", ["--moments-columns", "3", "--columns", "a*"]
    )

    assert (3, "a*") == (context.params["setting_columns"], context.params["columns"])
