"""The loaders of real plants read files in their authors' forms, here made small."""

from __future__ import annotations

import numpy as np
import pytest

from real_plants.judged import OURS, alarms, contenders, judged
from real_plants.sets import SETS
from submerge import UsageError


def mixed(n: int, width: int, seed: int = 0) -> np.ndarray:
    """Return rows whose channels follow two causes."""
    rng = np.random.default_rng(seed)
    causes = rng.standard_normal((n, 2))
    mixing = np.random.default_rng(1).standard_normal((2, width))
    return causes @ mixing + 0.1 * rng.standard_normal((n, width))


def tep(folder):
    """Write a normal run, a variable a row, and one with fault 4."""
    folder.mkdir()
    np.savetxt(folder / "d00.dat", mixed(500, 52).T)
    rows = mixed(960, 52, seed=2)
    rows[160:, 3] += 4.0
    np.savetxt(folder / "d04_te.dat", rows)


def skab(folder):
    """Write one experiment of 600 seconds with an anomaly in its last hundred."""
    (folder / "valve1").mkdir(parents=True)
    rows = mixed(600, 8)
    rows[500:, 2] += 4.0
    with (folder / "valve1" / "0.csv").open("w") as file:
        names = ";".join(f"sensor{i}" for i in range(8))
        file.write(f"datetime;{names};anomaly;changepoint\n")
        for i, row in enumerate(rows):
            values = ";".join(f"{value:.6f}" for value in row)
            file.write(f"2020-03-09 10:14:{i % 60:02d};{values};{float(i >= 500)};0.0\n")


def cmapss(folder):
    """Write one engine of 400 cycles whose sensor 2 drifts off at the end."""
    folder.mkdir()
    rows = mixed(400, 24)
    rows[-60:, 4] += np.linspace(0.0, 12.0, 60)
    rows[:, 2] = 100.0  # a setting that never changes
    head = np.column_stack([np.ones(400), np.arange(1, 401)])
    np.savetxt(folder / "train_FD001.txt", np.column_stack([head, rows]))


def tsb_ad(folder):
    """Write one series of which 500 rows are learnt."""
    folder.mkdir()
    rows, label = mixed(900, 6), np.zeros(900)
    rows[700:800, 1] += 4.0
    label[700:800] = 1.0
    table = np.column_stack([rows, label])
    header = ",".join([*(f"c{i}" for i in range(6)), "Label"])
    path = folder / "001_Made_id_1_Sensor_tr_500_1st_700.csv"
    np.savetxt(path, table, delimiter=",", header=header, comments="")


def care(folder):
    """Write one turbine with an anomaly, a gap and rows in another state."""
    datasets = folder / "Wind Farm A" / "datasets"
    datasets.mkdir(parents=True)
    head = "asset_id;event_id;event_label;event_start;event_start_id;event_end;event_end_id\n"
    line = "7;3;anomaly;2022-08-01;700;2022-08-02;799\n"
    (folder / "Wind Farm A" / "event_info.csv").write_text(head + line)
    rows = mixed(900, 5)
    rows[700:800, 1] += 4.0
    with (datasets / "3.csv").open("w") as file:
        names = ";".join(f"sensor_{i}_avg" for i in range(5))
        file.write(f"time_stamp;asset_id;id;train_test;status_type_id;{names}\n")
        for i, row in enumerate(rows):
            values = [f"{value:.6f}" for value in row]
            values[0] = "" if i == 650 else values[0]
            part, state = ("train" if i < 520 else "prediction"), (5 if i < 20 else 0)
            file.write(f"2022-07-{1 + i // 144:02d};7;{i};{part};{state};{';'.join(values)}\n")


WRITERS = {"tep": tep, "skab": skab, "cmapss": cmapss, "tsb-ad": tsb_ad, "care": care}
SIZES = {
    "tep": (500, 960, 52, 800),
    "skab": (400, 200, 8, 100),
    "cmapss": (120, 250, 23, 30),
    "tsb-ad": (500, 400, 6, 100),
    "care": (500, 380, 5, 100),
}
"""Rows learnt, rows judged, channels that vary, faulty rows."""


@pytest.mark.parametrize("name", SETS)
def test_a_set_is_read_as_its_authors_write_it(name, tmp_path):
    """Rows are learnt and judged as the set's own description says."""
    WRITERS[name](tmp_path / SETS[name].folder)
    [case] = SETS[name].cases(tmp_path)

    learnt, rows, width, faulty = SIZES[name]
    assert (learnt, width) == case.history.shape
    assert (rows, width, width) == (*case.rows.shape, len(case.channels))
    assert faulty == case.faulty.sum()
    assert np.isfinite(case.history).all()


@pytest.mark.parametrize("name", SETS)
def test_files_that_are_not_there_are_named(name, tmp_path):
    """One line says what is expected where, and who has it."""
    with pytest.raises(UsageError, match=r"expected .* in .*: .* has them; set SUBMERGE_DATA"):
        SETS[name].cases(tmp_path)


@pytest.mark.slow
def test_a_case_is_judged_by_all_detectors(tmp_path):
    """A shifted sensor is found by ours, by a row's score and by an alarm."""
    tep(tmp_path / "tep")
    [case] = SETS["tep"].cases(tmp_path)
    found = {name: judged(case, make) for name, make in contenders().items()}
    raised = alarms(case)

    assert len(found) >= 3
    assert found[OURS].found > 0.9
    assert found[OURS].auc > 0.95
    assert raised.hit
