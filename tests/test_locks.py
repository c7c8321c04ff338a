"""What the images install: pinned, hashed, and what pyproject.toml asks for."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
LOCKS = ROOT / "deploy" / "requirements"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
EXTRAS = PROJECT["project"]["optional-dependencies"]

LEFT_OUT = {"scipy"}
"""No image has it: half of its size, and for `submerge model compare` alone."""

IMAGES = {"aggregator": ["aggregator"], "client": ["client", "host"], "pki": ["pki"]}
"""Locks, and the extras that each is for."""

PIN = re.compile(r"([A-Za-z0-9._-]+)==(\S+)((?: \\\n {4}--hash=sha256:[0-9a-f]{64})+)\n")


def asked(texts: list[str]) -> dict[str, Requirement]:
    """The requirements, and those of our own extras among them."""
    found: dict[str, Requirement] = {}
    for each in map(Requirement, texts):
        if each.name == "submerge":
            for extra in each.extras:
                found |= asked(EXTRAS[extra])
        else:
            found[canonicalize_name(each.name)] = each
    return found


def pinned(name: str) -> dict[str, str]:
    """The versions of a lock; nothing else stands in it but comments."""
    text = (LOCKS / f"{name}.lock").read_text()
    assert "" == re.sub(r"^#.*\n", "", PIN.sub("", text), flags=re.MULTILINE).strip()
    return {canonicalize_name(found[1]): found[2] for found in PIN.finditer(text)}


@pytest.mark.parametrize("name", [*IMAGES, "deb12"])
def test_a_lock_has_what_its_image_needs(name):
    """Each package, in a version that pyproject.toml allows; `make lock` where this fails."""
    extras = IMAGES.get(name, IMAGES["client"])
    texts = [*PROJECT["project"]["dependencies"], *(t for e in extras for t in EXTRAS[e])]
    versions = pinned(name)
    wanted = asked(texts)
    assert set() == wanted.keys() - versions.keys() - LEFT_OUT
    assert [] == [
        each
        for key, each in wanted.items()
        if key in versions and versions[key] not in each.specifier
    ]
    assert not LEFT_OUT & versions.keys()


@pytest.mark.parametrize("name", ["build", "release"])
def test_the_build_has_its_own(name):
    """The build backend comes with hashes, too."""
    wanted = asked(PROJECT["build-system"]["requires"])
    versions = pinned(name)
    assert all(versions[key] in each.specifier for key, each in wanted.items())


def test_locks_agree_with_each_other():
    """One version of a package in all images."""
    versions: dict[str, set[str]] = {}
    for name in IMAGES:
        for key, version in pinned(name).items():
            versions.setdefault(key, set()).add(version)
    assert [] == [key for key, found in versions.items() if len(found) > 1]


@pytest.mark.parametrize("name", ["aggregator", "client"])
def test_an_image_installs_nothing_without_a_hash(name):
    """Each `pip install` takes a lock, or our own wheel alone; the base image is an argument."""
    text = (ROOT / name / "Dockerfile").read_text().replace("\\\n", " ")
    installs = re.findall(r"pip (?:--python \S+ )?(?:install|wheel) [^&\n]*", text)
    assert 4 == len(installs)
    for each in installs:
        hashed = "--require-hashes" in each and "--only-binary :all:" in each
        own = "/wheel/*.whl" in each or "--no-build-isolation" in each
        assert "--no-deps" in each
        assert hashed or own
    bases = {*re.findall(r"^FROM (\S+)", text, re.MULTILINE)}
    stages = {*re.findall(r"^FROM \S+ AS (\S+)", text, re.MULTILINE)}
    assert {"${PYTHON}"} == bases - stages - {"scratch"}
