"""Debian packages of the client, and lists of what packages and images hold (CycloneDX), in dist/.

`make release` runs it after the wheels are built. Wheels of a lock are unpacked, never installed:
so one machine builds for others, and the bytes are those that the lock has hashes of.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
DIST, BUILD = HERE.parent / "dist", HERE.parent / "build" / "release"
MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
UNUSED = ("**/tests", "**/include", "**/f2py", "**/*.pyi", "**/*.a", "**/_simd.*.so")
SILENT = ("pygments*", "markdown_it*", "mdurl*")  # of rich, for what no command of a client does


SCRIPTS = ("preinst", "postinst", "prerm", "postrm")


class Target(NamedTuple):
    """What is built for: the Python and the lock of a Debian, an image, or the wheel."""

    name: str
    lock: str
    python: str
    machine: str = "amd64"
    without: tuple[str, ...] = (*UNUSED, *SILENT)


DEBS = [
    Target(f"deb{debian}", lock, python, machine)
    for debian, lock, python in ((12, "deb12", "3.11"), (13, "client", "3.13"))
    for machine in MACHINES
]
SITES = [
    Target("wheel", "wheel", "3.12", without=()),
    Target("image-client", "client", "3.12"),
    Target("image-aggregator", "aggregator", "3.12", without=("**/tests",)),
    Target("image-pki", "pki", "3.12", without=("**/tests",)),
]


def unpack(target: Target, wheel: Path, site: Path) -> None:
    """Fill a folder of packages with our wheel, and with what a lock names."""
    wheels = BUILD / "wheels" / f"{target.name}-{target.machine}"
    tags = ("manylinux_2_28", "manylinux_2_27", "manylinux_2_17", "manylinux2014")
    run(
        *(sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"),
        *("--no-deps", "--require-hashes", "--only-binary", ":all:", "--implementation", "cp"),
        *("--python-version", target.python, "--dest", str(wheels)),
        *(word for tag in tags for word in ("--platform", f"{tag}_{MACHINES[target.machine]}")),
        *("--requirement", str(HERE / "requirements" / f"{target.lock}.lock")),
    )
    for each in sorted([*wheels.iterdir(), wheel]):
        with zipfile.ZipFile(each) as archive:
            if any(".data/" in name for name in archive.namelist()):
                raise SystemExit(f"{each.name}: expected packages alone, got other files")
            archive.extractall(site)
    for pattern in target.without:
        for path in sorted(site.glob(pattern)):
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def list_components(site: Path, to: Path) -> None:
    """Write what a folder of packages holds, as CycloneDX, as an environment of its own sees it."""
    beside = BUILD / "beside"
    venv.create(beside, clear=True, with_pip=False)
    (packages,) = beside.glob("lib/python3*/site-packages")
    (packages / "site.pth").write_text(f"{site}\n")
    command = (*(sys.executable, "-m", "cyclonedx_py", "environment"), "--output-reproducible")
    run(*command, "--output-file", str(to), str(beside / "bin" / "python"))


def build_deb(target: Target, version: str, tree: Path, components: Path) -> None:
    """Make the Debian package of a tree that holds its packages."""
    top = tree / "opt" / "submerge"
    service = "usr/lib/systemd/system/submerge-client.service"
    sources = {
        "opt/submerge/bin/submerge": HERE / "deb" / "submerge",
        "opt/submerge/sbom.cdx.json": components,
        service: HERE.parent / "client" / "submerge-client.service",
        "usr/share/doc/submerge-client/copyright": HERE.parent / "LICENSE",
        **{f"DEBIAN/{name}": HERE / "deb" / name for name in SCRIPTS},
    }
    for place, source in sources.items():
        (tree / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, tree / place)
    for folder in ("etc/submerge", "usr/bin"):
        (tree / folder).mkdir(parents=True)
    (top / "pyvenv.cfg").write_text(
        f"home = /usr/bin\ninclude-system-site-packages = false\nversion = {target.python}\n"
    )
    (top / "bin" / "python3").symlink_to(f"/usr/bin/python{target.python}")
    (tree / "usr" / "bin" / "submerge").symlink_to("/opt/submerge/bin/submerge")
    size = sum(each.stat().st_size for each in tree.rglob("*") if each.is_file()) // 1024
    fields = {"version": version, "machine": target.machine, "python": target.python, "size": size}
    control = (HERE / "deb" / "control").read_text().format(**fields)
    (tree / "DEBIAN" / "control").write_text(control)
    runs = {tree / "opt/submerge/bin/submerge", *(tree / "DEBIAN" / name for name in SCRIPTS)}
    for each in (tree, *tree.rglob("*")):
        if not each.is_symlink():
            each.chmod(0o755 if each.is_dir() or each in runs else 0o644)
    run("dpkg-deb", "--root-owner-group", "-Zxz", "-z2", "--threads-max=1", "--build", tree, DIST)


def run(*command: str | Path) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def main() -> None:
    if "SOURCE_DATE_EPOCH" not in os.environ:
        raise SystemExit("expected SOURCE_DATE_EPOCH, got none: make release")
    if shutil.which("dpkg-deb") is None:
        raise SystemExit("expected dpkg-deb, got none: apt-get install dpkg")
    (wheel,) = DIST.glob("submerge-*.whl")
    version = wheel.name.split("-")[1]
    shutil.rmtree(BUILD, ignore_errors=True)
    for target in SITES:
        site = BUILD / target.name
        unpack(target, wheel, site)
        list_components(site, DIST / f"submerge-{target.name}-{version}.cdx.json")
    for target in DEBS:
        tree = BUILD / f"{target.name}-{target.machine}"
        site = tree / "opt" / "submerge" / "lib" / f"python{target.python}" / "site-packages"
        unpack(target, wheel, site)
        own = f"{version}+{target.name}"
        components = DIST / f"submerge-client_{own}_{target.machine}.cdx.json"
        list_components(site, components)
        build_deb(target, own, tree, components)


if __name__ == "__main__":
    main()
