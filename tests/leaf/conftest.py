"""The leaf, compiled once."""

from __future__ import annotations

import shutil

import pytest

from c_leaf import build


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    """What a device would run, as a shared library."""
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    return build(tmp_path_factory.mktemp("leaf"))
