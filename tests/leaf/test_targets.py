"""The leaf as other compilers and processors have it, and under sanitizers."""

from __future__ import annotations

import dataclasses
import os
import shutil
import struct
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from submerge import Schema, nodes
from submerge.protocol.desired_state import DesiredState
from submerge.protocol.messages import (
    Answer,
    Hello,
    Incarnation,
    Joined,
    Message,
    Model,
    Reason,
    Stamp,
)
from submerge.schema import Channel, Scaling
from submerge.stats.block_maxima import NONE
from submerge.stats.quantile_sketch import FINE, QuantileSketch
from submerge_proto.wire import codec
from support.fuzz import _bytes
from support.leaf_root import LeafRoot

HERE = Path(__file__).parents[2] / "leaf"
DIM = 20
SCHEMA = Schema(
    tuple(Channel(f"channel {i}", "bar") for i in range(DIM)),
    scaling=Scaling((1.0,) * DIM, tuple(np.linspace(0.5, 2, DIM))),
)
KINDS = ("join", "report", "joined", "answer", "hello", "model")
SECONDS = float(os.environ.get("SUBMERGE_LEAF_FUZZ_S", "5"))


def built(folder: Path, target: str, *needs: str) -> Path:
    """Return a program that the leaf's Makefile has made; skip where that cannot be."""
    for need in ("make", "gcc", *needs):
        if shutil.which(need) is None:
            pytest.skip(f"{need} is not installed")
    leaf = shutil.copytree(HERE, folder / "leaf", ignore=shutil.ignore_patterns("build"))
    (folder / "schema.json").write_bytes(SCHEMA.canonical)
    variables = f"PYTHON={sys.executable}", f"SCHEMA={folder / 'schema.json'}"
    made = subprocess.run(
        [str(shutil.which("make")), "-C", leaf, f"build/{target}", *variables],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
    )
    if made.returncode and ("cannot find" in made.stderr or "No such file" in made.stderr):
        pytest.skip(f"no libraries for {target}: {made.stderr.splitlines()[-1]}")
    assert not made.returncode, made.stderr
    return Path(leaf) / "build" / target


class Piped:
    """A leaf behind a pipe; all that was said to it is kept."""

    def __init__(self, program: Path) -> None:
        pipe = subprocess.PIPE
        self._process = subprocess.Popen([program], stdin=pipe, stdout=pipe, stderr=pipe)
        self.said, self.answered = bytearray(), bytearray()

    def say(self, letter: str, data: bytes) -> tuple[int, list[tuple[str, bytes]]]:
        """Return what became of it, and the messages that are due."""
        frame = letter.encode() + struct.pack("<I", len(data)) + data
        self.said += frame
        try:
            self._process.stdin.write(frame)
            self._process.stdin.flush()
        except BrokenPipeError:
            raise AssertionError(self._process.stderr.read().decode()) from None
        fate, messages = self._read(1)[0], []
        while (head := self._read(5))[:1] != b".":
            data = self._read(struct.unpack("<I", head[1:])[0])
            messages.append((KINDS[int(head[:1])], data))
        self._read(4)
        return fate, messages

    def at(self, steady: float) -> list[tuple[str, bytes]]:
        return self.say("t", struct.pack("<dd", steady, 1.7e9 + steady))[1]

    def receive(self, kind: str, data: bytes) -> list[tuple[str, bytes]]:
        return self.say(str(KINDS.index(kind)), data)[1]

    def _read(self, n: int) -> bytes:
        found = self._process.stdout.read(n)
        assert len(found) == n, self._process.stderr.read().decode()
        self.answered += found
        return found

    def close(self) -> None:
        self._process.stdin.close()
        assert 0 == self._process.wait(60), self._process.stderr.read().decode()
        self._process.stdout.close()
        self._process.stderr.close()


def plant(n: int, seed: int = 0) -> bytes:
    rng = np.random.default_rng(seed)
    causes = np.random.default_rng(99).standard_normal((3, DIM))
    rows = rng.standard_normal((n, 3)) @ causes + 0.1 * rng.standard_normal((n, DIM)) + 5
    return rows.tobytes()


def conversation(leaf: Piped) -> LeafRoot:
    """Let it learn, report, and score by the model that comes; return its root."""
    root = LeafRoot(SCHEMA)
    for steady in (1, 400, 500, 900, 1300):
        came, due = root.step(nodes.Tick(), steady), leaf.at(steady)
        due += leaf.say("r", plant(50, steady))[1] + (
            leaf.say("f", b"")[1] if steady == 1300 else []
        )
        while came or due:
            due += [message for each in came for message in leaf.receive(*each)]
            came = [answer for each in due for answer in root.hear(*each, steady)]
            due = []
    return root


def without_ticks(answered: bytes) -> tuple[bytes, list[int]]:
    """Return what a leaf has answered, and how long each frame took."""
    at, kept, ticks = 0, bytearray(), []
    while at < len(answered):
        kept += answered[at : at + 1]
        at += 1
        last = b""
        while last != b".":
            last = answered[at : at + 1]
            end = at + 5 + struct.unpack("<I", answered[at + 1 : at + 5])[0]
            if last == b".":
                ticks += struct.unpack("<I", answered[at + 5 : end])
            else:
                kept += answered[at:end]
            at = end
    return bytes(kept), ticks


def talked(program: Path) -> Piped:
    leaf = Piped(program)
    root = conversation(leaf)
    leaf.close()
    assert 250 == root.heard[-1].counts.generated
    assert root.heard[-1].version
    return leaf


@pytest.mark.slow
def test_with_32_bits_it_says_the_same_bytes(tmp_path):
    """Sums, triangle and times do not depend on the width of a pointer."""
    wide = talked(built(tmp_path / "a", "host"))
    narrow = talked(built(tmp_path / "b", "host-32"))

    assert wide.said == narrow.said
    assert wide.answered == narrow.answered


QEMU = ("-M", "mps2-an385", "-display", "none", "-serial", "none", "-monitor", "none")
COUNTED = ("-icount", "shift=0", "-semihosting-config", "enable=on,target=native")


@pytest.mark.slow
def test_a_cortex_m3_says_the_same_bytes(tmp_path, capsys):
    """Without floating point in hardware; it takes a bounded number of steps a row."""
    program = built(tmp_path / "b", "host-m3", "arm-none-eabi-gcc", "qemu-system-arm")
    here = talked(built(tmp_path / "a", "host"))
    (tmp_path / "frames").write_bytes(here.said)
    command = ["qemu-system-arm", *QEMU, *COUNTED, "-kernel", program]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=300, capture_output=True)
    answered, ticks = without_ticks((tmp_path / "said").read_bytes())

    assert without_ticks(bytes(here.answered))[0] == answered
    # A tick of this board is 40 ns, and of virtual time each step takes 1 ns.
    rows = [
        40 * n / 50 for n, letter in zip(ticks, letters(here.said), strict=True) if letter == "r"
    ]
    with capsys.disabled():
        sys.stdout.write(f"\nCortex-M3, {DIM} channels: {rows[0]:,.0f} steps a row to learn, ")
        sys.stdout.write(f"{rows[-1] - rows[0]:,.0f} more to score\n")
    assert 0 < rows[0] < rows[-1] < 1e6


def letters(said: bytes) -> list[str]:
    """Return the letters of all frames."""
    at, found = 0, []
    while at < len(said):
        found.append(chr(said[at]))
        at += 5 + struct.unpack("<I", said[at + 1 : at + 5])[0]
    return found


def valid(model: Model, stamp: Stamp, rng: np.random.Generator) -> Message:
    """Return a message as a parent might send it to what the leaf has said last."""
    pinned = Incarnation(int(rng.integers(1, 3)), 1)
    reason = (Reason.ACK, *Reason)[max(0, int(rng.integers(-10, 14)))]
    states = tuple(
        DesiredState("leaf", int(rng.integers(1, 99)), paused=bool(rng.integers(2)))
        for _ in range(int(rng.integers(3)))
    )
    match int(rng.integers(6)):
        case 0 | 1:
            text = SCHEMA.canonical
            return Joined(stamp, reason, b"", pinned, True, 0, text, whole_scatter=True)
        case 2 | 3:
            newest = stamp.seq
            return Answer(stamp, reason, pinned=pinned, newest=newest, desired_states=states)
        case 4:
            return Hello("root", pinned, True, int(rng.integers(1, 9)))
        case _:
            return dataclasses.replace(model, version=int(rng.integers(1, 2**40)))


@pytest.mark.slow
def test_no_message_that_comes_down_harms_it(tmp_path):
    """Damaged bytes, and valid ones with other numbers: no step outside of an array, and whatever
    it says after them can be read."""
    leaf = Piped(built(tmp_path, "host-sanitized"))
    root = conversation(leaf)
    maxima = QuantileSketch.of(np.random.default_rng(0).uniform(10, 60, 5000), FINE)
    model = root.node.model("g")
    model = dataclasses.replace(model, maxima=dataclasses.replace(NONE, ewma=maxima))
    rng, last, n, steady, taken = np.random.default_rng(int(SECONDS)), b"", 0, 2000.0, 0
    until, stamp = time.monotonic() + SECONDS, root.heard[-1].stamp
    while time.monotonic() < until:
        n += 1
        message = valid(model, stamp, rng)
        kind, data = _bytes(message, last, rng)
        last = data
        kind = {"watch": "hello" if isinstance(message, Hello) else "model"}.get(kind, kind)
        fate, due = leaf.say(str(KINDS.index(kind) if kind in KINDS else rng.integers(10)), data)
        taken += fate == 0
        if n % 5 == 0:
            steady += float(rng.exponential(60))
            due += leaf.at(steady)
        if n % 20 == 0:
            due += leaf.say("r", plant(3, n))[1]
        for each in due:
            stamp = codec.decode(*each).stamp
        leaf.said.clear()
        leaf.answered.clear()
    leaf.close()
    sys.stdout.write(f"{n:,} messages in {SECONDS:g} s, {taken:,} of them taken\n")
    assert taken > n / 20
