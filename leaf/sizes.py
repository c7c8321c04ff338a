"""Print what a leaf takes: code, constants and RAM, by target and number of channels.

python sizes.py            # `make sizes`
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from c_leaf import HERE, SOURCES

FLAGS = ("-std=c99", "-Os", "-ffp-contract=off", "-c", "-fstack-usage")
THUMB = "arm-none-eabi-gcc", "-mthumb"
TARGETS = {
    "x86-64": ("gcc",),
    "x86, 32 bits": ("gcc", "-m32"),
    "Cortex-M0+": (*THUMB, "-mcpu=cortex-m0plus"),
    "Cortex-M3": (*THUMB, "-mcpu=cortex-m3"),
    "Cortex-M4F": (*THUMB, "-mcpu=cortex-m4", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16"),
    "Cortex-M7, double": (*THUMB, "-mcpu=cortex-m7", "-mfloat-abi=hard", "-mfpu=fpv5-d16"),
}
STRUCTS = """#include "submerge_leaf.h"
char learns[sizeof(submerge_leaf)], scores[sizeof(submerge_leaf_scorer)];
char room[SUBMERGE_LEAF_ROOM];
"""


def compiled(compiler: tuple[str, ...], channels: int, folder: Path) -> dict[str, int]:
    """Return the sizes of one target; CalledProcessError where it has no library."""
    (folder / "structs.c").write_text(STRUCTS)
    found = {"code": 0, "constants": 0, "data": 0, "stack": 0}
    for source in (*SOURCES, folder / "structs.c"):
        name = folder / f"{source.stem}.o"
        define = f"-DSUBMERGE_LEAF_CHANNELS={channels}"
        command = [*compiler, *FLAGS, define, f"-I{HERE}", str(source), "-o", str(name)]
        subprocess.run(command, check=True, capture_output=True, cwd=folder)
        tools = compiler[0].removesuffix("gcc")
        said = subprocess.run([f"{tools}size", "-A", name], capture_output=True, text=True).stdout
        for section, size in re.findall(r"^(\.\w+)\S* +(\d+)", said, re.MULTILINE):
            kinds = {".text": "code", ".rodata": "constants", ".data": "data"}
            if section in kinds and source.parent == HERE:
                found[kinds[section]] += int(size)
        if source.parent != HERE:
            said = subprocess.run([f"{tools}nm", "-S", name], capture_output=True, text=True).stdout
            pattern = r"^\w+ (\w+) \w (\w+)$"
            found |= {each: int(n, 16) for n, each in re.findall(pattern, said, re.MULTILINE)}
        else:
            frames = (folder / f"{source.stem}.su").read_text()
            deepest = max(int(line.split("\t")[1]) for line in frames.splitlines())
            found["stack"] = max(found["stack"], deepest)
    return found


def main() -> None:
    write = sys.stdout.write
    write("bytes; `stack` is the largest frame of one function\n\n")
    columns = ("code", "constants", "data", "learns", "scores", "room", "stack")
    write(f"{'target':18}{'channels':>9}" + "".join(f"{each:>10}" for each in columns) + "\n")
    for target, compiler in TARGETS.items():
        for channels in (8, 16, 32):
            if shutil.which(compiler[0]) is None:
                write(f"{target:18}{channels:9}  {compiler[0]} is not installed\n")
                continue
            with tempfile.TemporaryDirectory() as folder:
                try:
                    found = compiled(compiler, channels, Path(folder))
                except subprocess.CalledProcessError:
                    write(f"{target:18}{channels:9}  no libraries\n")
                    continue
            numbers = "".join(f"{found[each]:10,}" for each in columns)
            write(f"{target:18}{channels:9}{numbers}\n")


if __name__ == "__main__":
    main()
