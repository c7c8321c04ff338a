"""Retry: when to try again without an answer: full jitter below a doubling ceiling, for ever."""

from __future__ import annotations

import math

from submerge.protocol.names import RandomSource


class Retry:
    """One thing that is tried until it is answered, at least every `cap_s`.

    patience_s : An answer may take so long; also the first ceiling of the wait.
    at : The next try on the steady clock; `inf` with nothing to try.
    unanswered : The last try may still get an answer.
    """

    def __init__(self, patience_s: float, cap_s: float) -> None:
        self._patience, self._cap = patience_s, cap_s
        self.tries = 0
        self.at = math.inf
        self.unanswered = False
        self._tried_at = -math.inf

    def now(self) -> None:
        """Make a first try due at once."""
        self.tries, self.at = 0, -math.inf

    def again(self) -> None:
        """Make a first try due, `patience_s` after the last: two that disagree keep the pace."""
        self.tries, self.at = 0, self._tried_at + self._patience

    def soon(self, steady: float, rng: RandomSource) -> None:
        """Make a first try due within `patience_s`: many nodes get this hello at once."""
        self.tries, self.at = 0, min(self.at, steady + self._patience * rng.random())

    def stop(self) -> None:
        """Note the answer: nothing is due."""
        self.tries, self.at = 0, math.inf
        self.unanswered = False

    def tried(self, steady: float, rng: RandomSource) -> None:
        """Count a try at `steady`, and set when the next one is due."""
        # 2**20 s is beyond any cap: the exponent need not grow for ever.
        ceiling = min(self._cap, self._patience * 2.0 ** min(self.tries, 20))
        self.tries += 1
        self.unanswered = True
        self._tried_at = steady
        self.at = steady + min(self._cap, self._patience + ceiling * rng.random())
