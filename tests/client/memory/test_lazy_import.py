"""Modules that are imported and not used: they load at their first use, as themselves."""

from __future__ import annotations

import subprocess
import sys

import pytest

from submerge_client.memory import UNUSED, deferred

LAZILY = """
import sys
from submerge_client.memory import deferred

with deferred():
    {body}
    before = {{*sys.modules}}
print({brings!r} in before)
import {name} as module
print(module.{attribute} is not None, {brings!r} in sys.modules, len(sys.meta_path))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "name", "attribute", "brings"),
    [
        ("import paho.mqtt.client", "urllib.request", "Request", "http.client"),
        ("import grpc", "grpc.aio", "Channel", "grpc.aio._channel"),
        ("import grpc", "asyncio", "run", "asyncio.base_events"),
        (
            "import google.protobuf.internal.builder",
            "google.protobuf.internal.python_message",
            "GeneratedProtocolMessageType",
            "google.protobuf.text_format",
        ),
    ],
    ids=lambda each: each if "." in each else None,
)
def test_what_nobody_uses_is_not_loaded_and_what_somebody_uses_is(body, name, attribute, brings):
    """Not when a library imports it, but when an attribute is read; nothing stays hooked."""
    code = LAZILY.format(body=body, name=name, attribute=attribute, brings=brings)
    plain = "import sys; print(len(sys.meta_path))"
    done, hooks = (
        subprocess.run([sys.executable, "-c", each], capture_output=True, text=True, check=True)
        for each in (code, plain)
    )

    assert ["False", "True", "True", hooks.stdout.strip()] == done.stdout.split()


def test_the_hook_is_gone_after_an_error():
    """An import that fails leaves the way of finding modules as it was."""
    before = list(sys.meta_path)
    with pytest.raises(ZeroDivisionError), deferred():
        1 / 0  # noqa: B018

    assert before == sys.meta_path
    assert "urllib.request" in UNUSED
