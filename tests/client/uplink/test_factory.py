"""make_uplink(): what is settled before a transport is loaded."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytest.importorskip("grpc")

PROGRAM = """
import os, sys
from submerge_client.config.links import UplinkConfig
from submerge_client.uplink.factory import make_uplink

assert "grpc" not in sys.modules
link = UplinkConfig(url="grpc://127.0.0.1:1", insecure=True)
make_uplink(link, parent="hall", node="a", groups=["room"])
print("grpc" in sys.modules, os.environ["GRPC_ENABLE_FORK_SUPPORT"])
"""


@pytest.mark.slow
def test_grpc_has_no_handlers_of_forks():
    """They are off before it is loaded: a sensor's program would be aborted as it starts."""
    others = {k: v for k, v in os.environ.items() if k != "GRPC_ENABLE_FORK_SUPPORT"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=others, capture_output=True, text=True, check=False
    )

    assert ("True 0\n", 0) == (done.stdout, done.returncode), done.stderr
