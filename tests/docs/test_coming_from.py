"""The commands of docs/coming-from.md, run on small files in the layouts of the two services."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "coming-from.md").read_text("utf-8")
RESULTS = PAGE.partition("\n## Results")[2].partition("\n## ")[0]
CHANNELS = ("flow", "pressure", "current", "rpm")
BEGIN = np.datetime64("2026-03-02T00:00:00")

pytestmark = pytest.mark.slow


def block(name: str) -> str:
    """Return the commands, or the program, between two marks of the page."""
    pattern = rf"<!-- {name} -->\n```\w*\n(.*?)```\n<!-- end of {name} -->"
    (text,) = re.findall(pattern, PAGE, re.DOTALL)
    return str(text)


def readings(days: range, fault: bool = False) -> tuple[list[str], np.ndarray]:
    """Return times and readings (n, 4) of a pump that stands still for an hour of each day."""
    minutes = np.arange(1440 * days.start, 1440 * days.stop)
    rng = np.random.default_rng(days.start)
    load = 1 + 0.3 * np.sin(minutes / 200) + rng.normal(0, 0.05, len(minutes))
    rows = np.column_stack([40 * load, 3 + 1.5 * load, 4 + 6 * load, 1480 + 0 * load])
    rows += rng.normal(0, [0.4, 0.02, 0.1, 2.0], rows.shape)
    if fault:
        rows[840:930, 0] += 6
    rows[minutes % 1440 < 60] = [0.0, 1.0, 0.0, 0.0]
    times = [str(BEGIN + np.timedelta64(int(minute), "m")) for minute in minutes]
    return times, rows


def write(path: Path, headings: tuple[str, ...], times: list[str], rows: np.ndarray) -> None:
    """Write a CSV file with its folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [
        ",".join([time, *(f"{x:.3f}" for x in row)]) for time, row in zip(times, rows, strict=True)
    ]
    path.write_text("\n".join([",".join(headings), *lines]) + "\n")


def shell(commands: str, folder: Path) -> list[subprocess.CompletedProcess[str]]:
    """Run each line in a shell, with the `submerge` and the `python` of this test."""
    python = f'"{sys.executable}"'
    programs = {r"^submerge ": f"{python} -m submerge_operate ", r"^python ": f"{python} "}
    done = []
    for line in commands.splitlines():
        for pattern, program in programs.items():
            line = re.sub(pattern, lambda _, program=program: program, line)
        done.append(
            subprocess.run(
                ["/bin/sh", "-c", line],
                cwd=folder,
                env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
                capture_output=True,
                text=True,
            )
        )
    return done


def variables(folder: Path, days: range, fault: bool = False) -> None:
    """Write a folder as `MultiTable` was: a file for each variable, with timestamp and value."""
    times, rows = readings(days, fault)
    for i, channel in enumerate(CHANNELS):
        stamps = [f"{time}Z" for time in times]
        write(folder / f"{channel}.csv", ("timestamp", "value"), stamps, rows[:, i : i + 1])


def test_a_component_is_read_as_a_folder(tmp_path):
    """Lookout's files of one component are fitted and judged as they are, off-time left out."""
    for days in (range(3), range(3, 5)):
        path = tmp_path / "history" / "pump1" / f"from-day-{days.start}.csv"
        write(path, ("Timestamp", *CHANNELS), *readings(days))
    live = tmp_path / "live" / "pump1_20260323000000.csv"
    write(live, ("Timestamp", *CHANNELS), *readings(range(21, 22), fault=True))

    fitted, detected = shell(block("lookout"), tmp_path)

    assert 0 == fitted.returncode, fitted.stderr
    assert "300 not (other state)" in fitted.stdout
    assert 3 == detected.returncode, detected.stderr
    assert "2026-03-23 14:0" in detected.stdout
    assert "60 not" in detected.stderr


def test_labels_are_read_without_headings(tmp_path):
    """Lookout's file of labels is compared with alarms, and its span is not learnt."""
    times, rows = readings(range(5))
    hours = slice(2 * 1440 + 720, 2 * 1440 + 900)
    rows[hours, 0] += 6
    write(tmp_path / "history" / "pump1" / "all.csv", ("Timestamp", *CHANNELS), times, rows)
    begin, end = (f"{times[at]}.000000" for at in (hours.start, hours.stop))
    (tmp_path / "labels.csv").write_text(f"{begin},{end}\n")

    (fitted,) = shell(block("labels"), tmp_path)

    assert 0 == fitted.returncode, fitted.stderr
    assert "labels     1 of 1 known fault found" in fitted.stdout
    assert "labelled as faults" in fitted.stdout


def test_one_table_is_read_as_it_is(tmp_path):
    """`OneTable` needs no option."""
    times, rows = readings(range(5))
    stamps = [f"{time}Z" for time in times]
    write(tmp_path / "one_table.csv", ("timestamp", *CHANNELS), stamps, rows)

    (fitted,) = shell(block("one table"), tmp_path)

    assert 0 == fitted.returncode, fitted.stderr
    assert "channels   4" in fitted.stdout


def test_a_file_for_each_variable_is_joined(tmp_path):
    """`MultiTable` is joined by the page's program, and the alarm names the variable's file."""
    pytest.importorskip("pandas")
    (tmp_path / "join.py").write_text(block("join"))
    variables(tmp_path / "history", range(5))
    variables(tmp_path / "monday", range(21, 22), fault=True)

    *before, detected = shell(block("multi table"), tmp_path)

    assert [0, 0, 0] == [each.returncode for each in before], [each.stderr for each in before]
    assert 3 == detected.returncode, detected.stderr
    alarm = json.loads(detected.stdout.splitlines()[0])
    assert "flow" == max(alarm["first"], key=alarm["first"].get)
    first_cells = re.findall(r"^\| (`.*?) \|", RESULTS, re.MULTILINE)
    assert set(re.findall(r"`(\w+)`", " ".join(first_cells))) == set(alarm)


def test_the_program_that_joins_refuses_two_sensors_of_one_name(tmp_path):
    """Equal names in two components would become one channel in silence."""
    pytest.importorskip("pandas")
    (tmp_path / "join.py").write_text(block("join"))
    times, rows = readings(range(1))
    for component in ("motor", "pump"):
        write(tmp_path / "history" / component / "a.csv", ("Timestamp", *CHANNELS), times, rows)

    (joined,) = shell("python join.py history history.csv", tmp_path)

    assert 1 == joined.returncode
    assert "current, flow, pressure, rpm came before" in joined.stderr


def test_a_long_table_is_sorted_and_read(tmp_path):
    """The lines of shell make a long table of `MultiTable`, in the order of variables."""
    variables(tmp_path / "history", range(5))

    made, fitted = shell(block("long"), tmp_path)

    assert 0 == made.returncode, made.stderr
    assert 0 == fitted.returncode, fitted.stderr
    assert "channels   4" in fitted.stdout
    assert "300 not (other state)" in fitted.stdout
