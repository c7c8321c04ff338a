"""README's five minutes, as a reader runs them: an alarm, its channel and value, and no warning."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")

STATUS = "SUBMERGE__STATUS__ADDRESS=127.0.0.1:0"

pytestmark = pytest.mark.slow


def free_port() -> int:
    """A port that nothing listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def script() -> str:
    """The commands, without pip's, on a port of their own, with the clones' folder for examples."""
    (block,) = re.findall(r"<!-- five minutes -->\n```\n(.*?)```", README, re.DOTALL)
    lines = [line for line in block.splitlines() if not line.startswith("pip ")]
    text = "\n".join(lines).replace("examples/", f"{ROOT}/examples/")
    text = re.sub(r" init >", f" init | sed s/8470/{free_port()}/ >", text)
    text = re.sub(r"^(?=SUBMERGE__.* aggregator )", f"{STATUS} ", text, flags=re.MULTILINE)
    text = re.sub(r"\bsubmerge (?=[acmn])", f"{sys.executable} -m submerge_operate ", text)
    return "set -m\n" + re.sub(r"^python ", f"{sys.executable} ", text, flags=re.MULTILINE)


def test_the_five_minutes_show_a_fault_and_nothing_else(tmp_path):
    """The flow meter is named, with its value; no row is lost, and no log line warns."""
    more = {"PYTHONPATH": os.pathsep.join(sys.path), "COLUMNS": "200"}
    done = subprocess.run(
        ["/bin/bash", "-c", script()],
        cwd=tmp_path,
        env=os.environ | more,
        capture_output=True,
        text=True,
        timeout=600,
    )

    assert 0 == done.returncode, done.stderr
    assert re.search(r"\bewma +flow \d+% \(\+[4-8]\.?\d*\).* OPEN, provisional", done.stdout)
    assert re.search(r": flow reads \d\d\.?\d?, where the others say \d\d", done.stdout)
    assert re.search(r" \d,\d{3} learnt, [\d,]+ withheld, 0 lost: coverage \d", done.stdout)
    assert 1 == len(re.findall(r"(OPEN|over), provisional", done.stdout))
    # The twenty rows of the fault are withheld, and those of a false alarm of the first minute.
    ended = r" ended rows=5000 learnt=(\d+) waiting=0 lost=0 withheld=(\d+) sent_bytes"
    ((learnt, withheld),) = re.findall(ended, done.stderr)
    assert int(learnt) == 5000 - int(withheld) >= 2500
    # The commands follow one another at once: on a busy machine the client is there first.
    early = r"parent unreachable.*Connection refused.*"
    warned = re.findall(rf"warning +(no TLS|(?!{early}).*)", done.stderr)
    assert {"no TLS"} >= set(warned)
