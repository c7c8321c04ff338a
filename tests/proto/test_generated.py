"""Generated code: what is committed is what the oldest generator that we support makes."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
V1 = ROOT / "proto" / "submerge_proto" / "v1"
OURS = ROOT / ".venv-proto"


@pytest.mark.slow
@pytest.mark.skipif(
    not (OURS / "proto").exists() and not os.environ.get("CI"),
    reason="`make proto` sets up .venv-proto; only CI does so for a test",
)
def test_what_is_committed_is_what_the_forms_say(tmp_path):
    """`make proto` would change nothing: neither the code nor its types."""
    if not (OURS / "proto").exists():
        make = ["make", ".venv-proto/proto"]
        subprocess.run(make, check=True, cwd=ROOT, capture_output=True)
    sources = sorted(V1.glob("*.proto"))
    command = [OURS / "bin" / "python", "-m", "grpc_tools.protoc", f"-I{ROOT / 'proto'}"]
    command += [f"--python_out={tmp_path}", f"--pyi_out={tmp_path}", *sources]
    done = subprocess.run(command, capture_output=True, text=True)
    assert 0 == done.returncode, done.stderr
    made = {path.name: path.read_text() for path in tmp_path.rglob("*_pb2.py*")}

    assert {f"{path.stem}_pb2{end}" for path in sources for end in (".py", ".pyi")} == set(made)
    assert made == {path.name: path.read_text() for path in V1.glob("*_pb2.py*")}


def test_make_says_the_same():
    """The command that this test runs is the one that people run."""
    recipe = (ROOT / "Makefile").read_text()
    command = "-m grpc_tools.protoc -I proto --python_out=proto --pyi_out=proto"

    assert command in recipe
    assert "proto/submerge_proto/v1/*.proto" in recipe
