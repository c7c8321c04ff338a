"""The house: what is shipped, what is loaded, and who may import whom."""

from __future__ import annotations

import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from support.structure import WHEEL

ROOT = Path(__file__).parents[1]
PACKAGES = {Path(package).name for package in WHEEL}

PAGE = "submerge_aggregator/page/"
SCORERS = "submerge_bridges/export/scorer."


def modules_after(statement: str) -> set[str]:
    """Top-level names in sys.modules of a fresh interpreter after a statement."""
    code = f"{statement}\nimport sys\nprint(*{{name.split('.')[0] for name in sys.modules}})"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    return set(done.stdout.split())


def test_the_core_loads_numpy_and_nothing_else():
    """scipy costs a client 23 MiB; it comes in when asked for."""
    loaded = modules_after("import submerge")

    assert "numpy" in loaded
    foreign = {
        "scipy",
        "click",
        "rich",
        "humanize",
        "sklearn",
        "matplotlib",
        "asyncio",
        "socket",
        "grpc",
    }
    assert not foreign & loaded
    assert {"submerge"} == PACKAGES & loaded


def test_the_door_upward_loads_what_reads_tables_alone():
    """`submerge.Model` is looked up without the extra `files`, and brings no frames along."""
    loaded = modules_after("import submerge; submerge.Model")

    assert "submerge_files" in loaded
    assert not {"pandas", "polars", "pyarrow", "msgspec", "google", "scipy", "click"} & loaded


def test_learning_and_merging_load_no_scipy():
    """The hot path is numpy.linalg alone."""
    work = (
        "import numpy as np, submerge as s\n"
        "e = s.SAPCA(3, exact='never').partial_fit(np.random.default_rng(0).random((99, 60)))\n"
        "t = s.MergeTree(rank=3); t['a'] = e.subspace; t['b'] = e.subspace; t.root()\n"
        "s.spe(np.zeros((1, 60)), e.shown); s.loads(s.dumps(e))"
    )
    assert "scipy" not in modules_after(work)


def test_the_command_loads_click_and_nothing_heavy():
    """`submerge --help` answers at once: subcommands load when they are called."""
    loaded = modules_after(
        "from submerge_operate.cli import submerge;submerge.main(['--help'], standalone_mode=False)"
    )

    assert "click" in loaded
    assert not {"numpy", "rich", "humanize", "matplotlib", "scipy", "email", "zipfile"} & loaded


def test_an_aggregator_without_a_page_loads_none_of_it():
    """Its settings are known; what draws and serves it comes in when it is opened."""
    code = (
        "import submerge_aggregator.command, submerge_aggregator.assembly, sys; print(*sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    loaded = set(done.stdout.split())

    page = {name for name in loaded if name.startswith("submerge_aggregator.page.")}
    assert {"submerge_aggregator.page.config"} == page
    assert "jinja2" not in loaded


@pytest.mark.slow
def test_imports_keep_their_contracts():
    """import-linter's contracts in pyproject.toml: imports point left, the core is pure."""
    done = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_the_wheel_holds_our_packages_and_nothing_else(tmp_path):
    """Exactly our package names, typed, with a licence; the page's files; no tests, no data."""
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", tmp_path, ROOT],
        check=True,
        cwd=tmp_path,
    )
    (wheel,) = tmp_path.glob("submerge-*.whl")
    names = zipfile.ZipFile(wheel).namelist()

    tops = {name.split("/")[0] for name in names}
    assert PACKAGES == {top for top in tops if not top.endswith(".dist-info")}
    assert {f"{package}/py.typed" for package in PACKAGES} <= set(names)
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert {"frame.html"} <= {
        name.rpartition("/")[2] for name in names if f"{PAGE}templates/" in name
    }
    assert {"c", "mjs"} <= {
        name.removeprefix(SCORERS) for name in names if name.startswith(SCORERS)
    }
    assert all(
        name.endswith((".py", ".pyi", ".proto", "py.typed", "/sample.toml"))
        or ".dist-info/" in name
        or name.startswith((f"{PAGE}static/", f"{PAGE}templates/", SCORERS))
        for name in names
    )


def test_images_are_built_from_every_package():
    """What `.dockerignore` lets through holds the folders of both wheels."""
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    folders = {package.split("/")[0] for package in wheel["targets"]["wheel"]["packages"]}
    let_through = set((ROOT / ".dockerignore").read_text().splitlines())

    assert {f"!{folder}" for folder in folders | {"lab"}} <= let_through
