"""The units for systemd: what they expose, and that systemd understands every line."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
UNITS = [ROOT / "client/submerge-client.service", ROOT / "aggregator/submerge-aggregator.service"]
ANALYZE = shutil.which("systemd-analyze")
MOST = 1.5

pytestmark = [
    pytest.mark.skipif(ANALYZE is None, reason="systemd is not installed"),
    pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem),
]


def analyze(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(ANALYZE), *arguments], capture_output=True, text=True)


def test_a_unit_may_do_little(unit):
    """0 is nothing at all, 10 is what a service without any setting may do."""
    said = analyze("security", "--offline=true", "--no-pager", unit).stdout
    found = re.search(r"Overall exposure level for \S+ ([0-9.]+)", said)

    assert found is not None, said
    assert float(found[1]) <= MOST


def test_systemd_understands_a_unit(unit, tmp_path):
    """A setting that is misspelt would be passed over in silence."""
    here = tmp_path / unit.name
    here.write_text(
        unit.read_text().replace("ExecStart=/opt/submerge/bin/submerge", "ExecStart=/bin/true")
    )
    done = analyze("verify", "--man=no", here)

    assert (0, "") == (done.returncode, done.stderr)
