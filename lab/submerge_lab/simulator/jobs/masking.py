"""SimulatedMasking: keys of a simulated client. They hide nothing; a sum of all has none."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import numpy as np

from submerge.jobs.masks import Masking


class SimulatedMasking(Masking):
    """The keys of a node; a process has others than the one before."""

    def __init__(self, node: str, process: int) -> None:
        self._node, self._process, self._offers = node, process, 0

    def offer(self, job: str) -> tuple[bytes, bytes]:
        """Return the same text twice: its name, and a number of its own."""
        self._offers += 1
        text = f"{self._node} {self._process} {self._offers} {job}".encode()
        return text, text

    def agree(self, secret: bytes, offers: Sequence[bytes], job: str) -> Mapping[str, bytes]:
        """Return for each other node what follows from both texts."""
        texts = [each.rstrip(b"\0") for each in offers]
        pairs = {each.split(b" ")[0].decode(): b"\n".join(sorted((secret, each))) for each in texts}
        return {node: pair for node, pair in pairs.items() if node != self._node}

    def stream(self, common: bytes, turn: int, length: int) -> bytes:
        """Return bytes that look random."""
        digest = hashlib.blake2b(common, digest_size=8).digest()
        return np.random.Generator(np.random.PCG64([turn, *digest])).bytes(length)
