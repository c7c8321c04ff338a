"""docs/extending.md: a package adds a kind of sensor, a sink and an export, without a fork."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from submerge_files import model_file
from support import exported

PLUGIN = Path(__file__).parents[2] / "examples" / "plugin"
PAGE = Path(__file__).parents[2] / "docs" / "extending.md"

CONFIG = """
node = "n"
group = "g"
parent = "root"
state = "n.state"
[uplink]
url = "mqtt://127.0.0.1:1"
insecure = true
[schema]
channels = ["temp", "volt"]
[sensor]
kind = "{kind}"
folder = "hwmon"
period_s = 0.05
[[alarms.sink]]
kind = "folder"
path = "events"
"""

ALARMED = """
import dataclasses, io
from pathlib import Path
from submerge_client.alarms.factory import sinks_of
from submerge_client.config.client_config import load
from submerge.protocol.alarm_status import Alarm

open_ = Alarm("n", 1, 100.0, 101.0, 0.0, 5.0, "distance", (("temp", 1.0),), 3)
ended = dataclasses.replace(open_, ended=200.0)
for states in ([(), (open_,)], [(open_,), (ended,)], [(ended,)]):  # the program starts three times
    sinks = sinks_of(load(Path("client.toml"), {}), io.BytesIO())
    for state in states:
        sinks.update(state)
    sinks.close()
"""


@pytest.fixture(scope="module")
def environ(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which the example is installed; nothing is fetched."""
    target = tmp_path_factory.mktemp("site")
    install = ["install", "--quiet", "--no-deps", "--no-index", "--no-build-isolation"]
    subprocess.run(
        [sys.executable, "-m", "pip", *install, "--target", target, PLUGIN],
        check=True,
        capture_output=True,
    )
    return {**os.environ, "PYTHONPATH": str(target)}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the configuration, and what it names."""
    (tmp_path / "events").mkdir()
    (tmp_path / "hwmon").mkdir()
    (tmp_path / "hwmon" / "temp").write_text("41.5\n")
    (tmp_path / "client.toml").write_text(CONFIG.format(kind="numbers"))
    return tmp_path


def run(*words: str, cwd: Path, environ: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words], cwd=cwd, env=environ, capture_output=True, text=True, timeout=120
    )


@pytest.mark.slow
def test_a_client_reads_the_sensor_of_another_package(folder, environ):
    """`--test` shows its rows; what it cannot read is a gap."""
    code = "from submerge_client import trial; trial.TRIAL_S = 0.5"
    code += "; import submerge_client.config.client_config as c; from pathlib import Path"
    code += "; trial.try_out(c.load(Path('client.toml'), {}), seconds=0.5)"

    done = run("-c", code, cwd=folder, environ=environ)

    assert 0 == done.returncode, done.stderr
    assert "rows of 2 channels" in done.stdout
    assert "temp: mean 41.5" in done.stdout
    assert "volt: only gaps" in done.stdout


@pytest.mark.slow
def test_alarms_go_to_the_sink_of_another_package_once(folder, environ):
    """Each start and each end is a file, also over restarts."""
    done = run("-c", ALARMED, cwd=folder, environ=environ)

    assert (0, "") == (done.returncode, done.stderr)
    events = [json.loads(path.read_text()) for path in sorted((folder / "events").iterdir())]
    assert ["end", "start"] == [event["event"] for event in events]


@pytest.mark.slow
def test_a_model_is_exported_in_the_language_of_another_package(folder, environ):
    """It stands beside our own, and an option that it does not take is refused."""
    model_file.save(folder / "pump.model", exported.pump().learnt)
    words = ("-m", "submerge_operate", "model", "export", "pump.model", "--as", "text", "-o", "p")

    done = run(*words, cwd=folder, environ=environ)
    again = run(*words, "--float32", cwd=folder, environ=environ)

    assert 0 == done.returncode, done.stderr
    made = (folder / "p").read_text()
    assert "submerge model export" in made
    assert "flow is about " in made
    assert (2, 1) == (again.returncode, again.stderr.count("\n"))
    assert "--float32 has no effect on --as text" in again.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ('"numbers"', '"nmbers"', ['"numbers"', 'did you mean "numbers"?']),
        ("folder =", "fodler =", ['did you mean "folder"?']),
        ("path =", "pth =", ["alarms.sink[0].pth", 'did you mean "path"?']),
        ('kind = "folder"', 'kind = "pager"', ["alarms.sink[0].kind", 'expected "folder"']),
    ],
)
def test_mistakes_in_their_settings_are_told_as_in_our_own(folder, environ, before, after, words):
    """One line, with the place and the remedy."""
    path = folder / "client.toml"
    path.write_text(path.read_text().replace(before, after))

    done = run(
        "-m", "submerge_operate", "client", "--config", str(path), cwd=folder, environ=environ
    )

    assert (2, "", 1) == (done.returncode, done.stdout, done.stderr.count("\n"))
    assert all(word in done.stderr for word in words)


@pytest.mark.slow
def test_without_the_package_its_kinds_are_unknown(folder):
    """The client says which ones there are."""
    done = run(
        *("-m", "submerge_operate", "client", "--config", "client.toml"),
        cwd=folder,
        environ=dict(os.environ),
    )

    assert (2, 1) == (done.returncode, done.stderr.count("\n"))
    assert 'got "numbers"' in done.stderr


def test_the_page_shows_the_example_as_it_is():
    """Its registration stands there as in the file."""
    registered = (PLUGIN / "pyproject.toml").read_text()
    entries = registered[registered.index("[project.entry-points") :].partition("\n\n[tool")[0]

    assert entries in PAGE.read_text()
