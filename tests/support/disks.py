"""Disks that are too small, or may only be read: real ones, that go away again."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

MOUNT, UMOUNT = shutil.which("mount"), shutil.which("umount")


class Disk:
    """A file system of its own."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self._ballast = place / "ballast"

    def fill(self) -> None:
        """Leave not a byte."""
        with self._ballast.open("ab", buffering=0) as file:
            for size in (1 << 16, 1 << 12, 1):
                with suppress(OSError):
                    while True:
                        file.write(bytes(size))

    def make_room(self) -> None:
        self._ballast.unlink()

    def forbid_writing(self) -> None:
        """Let nobody write any more; nobody may have a file open for that."""
        remount = [str(MOUNT), "-o", "remount,ro", str(self.place)]
        subprocess.run(remount, check=True, capture_output=True)


@contextmanager
def small_disk(place: Path, size: str) -> Iterator[Disk]:
    """Mount an empty disk, as `size` of a tmpfs; skip the test where that cannot be."""
    if os.geteuid() or not MOUNT or not UMOUNT:
        pytest.skip("only root may mount a file system to fill it")
    place.mkdir()
    mount = [MOUNT, "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)]
    done = subprocess.run(mount, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"no file system can be mounted here: {done.stderr.strip()}")
    try:
        yield Disk(place)
    finally:
        subprocess.run([UMOUNT, str(place)], check=True)
