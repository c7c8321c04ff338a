"""An aggregator reads bytes of any sender: it does not start with the slow protobuf."""

from __future__ import annotations

import os
import subprocess

import pytest

from submerge import UsageError
from submerge_proto import implementation
from support.programs import SUBMERGE


def test_the_protobuf_in_c_will_do():
    """These tests run with the compiled one by default."""
    assert "python" != implementation.implementation()
    implementation.check_compiled()


def test_the_protobuf_in_pure_python_will_not(monkeypatch):
    """The error names what is missing, and what to do."""
    monkeypatch.setattr(implementation, "implementation", lambda: "python")

    with pytest.raises(UsageError, match=r"C implementation \(upb\), got .* pure Python: unset"):
        implementation.check_compiled()


@pytest.mark.slow
def test_the_program_says_so_in_one_line(tmp_path):
    """And ends with status 2, before it takes a store or an address."""
    config = tmp_path / "root.toml"
    config.write_text(
        'node = "root"\nstore = "root.db"\n[listen.grpc]\ninsecure = true\n'
        '[groups.pumps.schema]\nchannels = ["a", "b"]\n[groups.pumps.summary]\nrank = 1\n'
    )
    done = subprocess.run(
        [SUBMERGE, "aggregator", "--config", config],
        env={**os.environ, "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION": "python"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert 2 == done.returncode, done.stderr
    (line,) = done.stderr.splitlines()
    assert "protobuf's C implementation" in line
    assert [config] == list(tmp_path.iterdir())
