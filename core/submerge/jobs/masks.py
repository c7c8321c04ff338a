"""MaskedJob: rounds of a kind whose contributions add up, masked: only the sum of all is seen."""

# keys    each participant sends a public key, with its certificate's word that it is its own
# agree   all of these come down: each pair of participants has a secret that no other can have
# ...     the kind's rounds; what goes up are numbers to which masks were added
#
# 1. A number is a whole number of steps of 2^-64, modulo 2^256: sums are exact, in any tree and
#    order, and all that rows lead to fits (2^184). A sum of n is within n / 2 steps.
# 2. A pair's mask is a stream of its secret and the round. The first of both, by name, adds it, the
#    other subtracts it: it is gone from a sum of both, and any other sum is as good as random.
# 3. Keys are of an attempt, and each round of it is answered once: no stream is used twice.
# 4. A participant masks among `FEWEST_NODES` or more, itself among them.
# 5. Once it has sent a masked sum, it takes part in no other attempt, whose participants may be
#    others: the difference of two sums is a sum as well. Its driver has its rows in no other job.
# 6. A parent can check nothing but the form. Who lies spoils the answer, and is not found.

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from submerge._linalg import Array
from submerge.errors import PeerError, UsageError
from submerge.jobs.arrays import Arrays, Shapes, expect
from submerge.jobs.kind import JobAnswer, JobSetting, OfSums, PhaseDown
from submerge.jobs.points import JobPoints, node_id
from submerge.jobs.roster import MOST_MEMBERS

MASKED = JobSetting("masked", "flag", "Whether no one sees a sum of fewer than all nodes.", "no")
"""A setting of kinds that can be masked."""

FEWEST_NODES = 5
KEYS, AGREE = "keys", "agree"
BYTES, STEPS_PER_ONE = 32, 2.0**64
MOST_OFFER = 1536  # bytes of a key with its certificate
LIMB = np.uint64(0xFFFFFFFF)

FEW = "masked sums are of {} nodes or more, got {}"
IN_A_SUM = "its rows are in a masked sum already: it waits for as many new rows"

Limbs = npt.NDArray[np.uint64]
"""Numbers (n, 8) modulo 2^256, in parts of 32 bits, the lowest first; above is room for carries."""


class Masking:
    """A participant's keys. These are of one process, where there is nobody to hide from: none."""

    def offer(self, job: str) -> tuple[Any, bytes]:
        """Return a new secret key for a job, and the public one as others check it."""
        return None, b""

    def agree(self, secret: Any, offers: Sequence[bytes], job: str) -> Mapping[str, Any]:
        """Return what it has in common with each other node; PeerError for a false offer."""
        return {}

    def stream(self, common: Any, turn: int, length: int) -> bytes:
        """Return as many bytes as asked for, the same for both of a pair."""
        return bytes(length)


class _Secrets(NamedTuple):
    """A participant's memory in an attempt."""

    key: Any
    pairs: Mapping[str, Any] | None = None
    turn: int = 0
    inner: Any = None


class MaskedJob(OfSums):
    """A kind, masked, in the job of a name; `fewest`: 1 in one process."""

    # `kind.sums` has the shapes of what goes up, by phase and name.
    def __init__(self, kind: Any, job: str, fewest: int = FEWEST_NODES) -> None:
        self._kind, self._job, self._fewest = kind, job, fewest
        self._in_a_sum = set[str]()

    def first(self) -> tuple[Any, PhaseDown]:
        return 0, PhaseDown(KEYS, {})

    def contribute(
        self, memory: Any, down: PhaseDown, points: JobPoints, node: str
    ) -> tuple[Any, Arrays]:
        """Return a key; nothing, once it has the others'; or masked numbers."""
        masking = points.masking
        if down.phase == KEYS:
            if memory is not None or node in self._in_a_sum:
                raise UsageError(IN_A_SUM)
            key, offer = masking.offer(self._job)
            if len(offer) > MOST_OFFER:
                raise UsageError(f"a key has {MOST_OFFER} bytes at most, got {len(offer)}")
            words = np.frombuffer(offer.ljust(MOST_OFFER, b"\0"), "<u8")[None]
            nodes = np.array([node_id(node)], dtype=np.uint64)
            return _Secrets(key), {"nodes": nodes, "offers": words}
        if memory is None or (memory.pairs is None) != (down.phase == AGREE):
            raise UsageError("keys are agreed on once, before anything is summed")
        if down.phase == AGREE:
            offers = [each.tobytes() for each in down.arrays["offers"]]
            pairs = masking.agree(memory.key, offers, self._job)
            if len(pairs) + 1 < self._fewest:
                raise UsageError(FEW.format(self._fewest, len(pairs) + 1))
            return memory._replace(pairs=pairs), {}
        inner, up = self._kind.contribute(memory.inner, down, points, node)
        self._in_a_sum.add(node)
        numbers = to_limbs(np.concatenate([up[name].ravel() for name in self._shapes(down)]))
        for other, common in memory.pairs.items():
            mask = _limbs(masking.stream(common, memory.turn, BYTES * len(numbers)))
            numbers += mask if node < other else LIMB - mask
            numbers[:, 0] += np.uint64(node > other)
        return memory._replace(turn=memory.turn + 1, inner=inner), {"masked": _words(numbers)}

    def bytes_for(self, rows: int) -> int:
        shapes = (each for of_phase in self._kind.sums.values() for each in of_phase.values())
        masks = 16 * BYTES * sum(int(np.prod(each)) for each in shapes)
        return int(self._kind.bytes_for(rows)) + masks + 2 * MOST_OFFER * MOST_MEMBERS

    def merge(self, down: PhaseDown, ups: Sequence[Arrays]) -> Arrays:
        """Gather keys; or add up modulo 2^256, which needs no order."""
        if down.phase in (KEYS, AGREE):
            return {name: np.concatenate([up[name] for up in ups]) for name in ups[0]}
        total = reduce(np.add, (_limbs(up["masked"].tobytes()) for up in ups))
        return {"masked": _words(total)}

    def next(self, state: Any, down: PhaseDown, up: Arrays) -> tuple[Any, PhaseDown] | JobAnswer:
        """Hand the keys out, begin the kind's rounds, or go on with the sums of all."""
        if down.phase == KEYS:
            if (n := len(up["nodes"])) < self._fewest:
                raise UsageError(FEW.format(self._fewest, n))
            return n, PhaseDown(AGREE, up)
        n, inner = state if isinstance(state, tuple) else (state, None)
        if down.phase == AGREE:
            inner, following = self._kind.first()
            return (n, inner), following
        sums = self._unmasked(down, up)
        self._kind.check_up(down, sums, n)
        found = self._kind.next(inner, down, sums)
        return found if isinstance(found, JobAnswer) else ((n, found[0]), found[1])

    def check_down(self, down: PhaseDown) -> None:
        if down.phase == AGREE:
            self.check_up(PhaseDown(KEYS, {}), down.arrays)
        elif down.phase == KEYS:
            expect(down.arrays, {})
        else:
            self._kind.check_down(down)

    def check_up(self, down: PhaseDown, up: Arrays, clients: int = MOST_MEMBERS) -> None:
        """Refuse another form; the numbers are anything."""
        if down.phase == KEYS:
            words = {"nodes": (None,), "offers": (len(up.get("nodes", ())), MOST_OFFER // 8)}
            expect(up, words, whole=("nodes", "offers"))
            if not len(set(up["nodes"].tolist())) == len(up["nodes"]) <= clients:
                raise PeerError("each node has one key", kind="shape")
        elif down.phase == AGREE:
            expect(up, {})
        else:
            n = sum(int(np.prod(shape)) for shape in self._shapes(down).values())
            expect(up, {"masked": (n, BYTES // 8)}, whole=("masked",))

    def _shapes(self, down: PhaseDown) -> Shapes:
        return cast(Shapes, self._kind.sums[down.phase])

    def _unmasked(self, down: PhaseDown, up: Arrays) -> Arrays:
        """Return the kind's arrays of sums in which all masks are gone."""
        sums, at, found = from_limbs(_limbs(up["masked"].tobytes())), 0, dict[str, Array]()
        for name, shape in self._shapes(down).items():
            n = int(np.prod(shape))
            found[name], at = sums[at : at + n].reshape(shape), at + n
        return found


def to_limbs(values: Array) -> Limbs:
    """Return numbers (n,), each to the nearest step."""
    steps = (int(each) % 2 ** (8 * BYTES) for each in np.rint(values * STEPS_PER_ONE).tolist())
    return _limbs(b"".join(each.to_bytes(BYTES, "little") for each in steps))


def from_limbs(numbers: Limbs) -> Array:
    """Return the float64 nearest to each number (n,), that above half of all being negative."""
    body = _words(numbers).tobytes()
    parts = (body[at : at + BYTES] for at in range(0, len(body), BYTES))
    steps = (int.from_bytes(each, "little", signed=True) for each in parts)
    return np.array([each / 2**64 for each in steps])


def _limbs(body: bytes) -> Limbs:
    return np.frombuffer(body, "<u4").reshape(-1, BYTES // 4).astype(np.uint64)


def _words(numbers: Limbs) -> npt.NDArray[np.uint64]:
    """Return numbers with their carries made, as words (n, 4)."""
    carried = numbers.copy()
    for i in range(1, carried.shape[1]):
        carried[:, i] += carried[:, i - 1] >> np.uint64(32)
    low = (carried & LIMB).astype("<u4")
    return np.frombuffer(low.tobytes(), "<u8").reshape(-1, BYTES // 8).copy()
