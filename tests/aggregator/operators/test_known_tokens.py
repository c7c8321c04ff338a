"""Tokens of a running aggregator follow their file, and who comes and goes is recorded."""

from __future__ import annotations

import pytest

from submerge import UsageError
from submerge_aggregator.admission.watched_file import LOOK_S
from submerge_aggregator.operators.tokens import KnownTokens, Token, digest_of, tokens_text


def token(name: str, secret: str = "") -> Token:
    return Token(name, "read", 1_800_000_000.0, None, digest_of(secret or name))


class Followed:
    """A file of tokens, and what follows it."""

    def __init__(self, folder) -> None:
        self.path, self.now, self.recorded = folder / "tokens", 0.0, []

    def opens(self) -> None:
        self.known = KnownTokens(self.path, self._record, steady=lambda: self.now)

    def _record(self, event: str, /, **facts: object) -> None:
        self.recorded.append((event, facts))

    def writes(self, *tokens: Token) -> list[str]:
        """Write the file; return the names that are known then."""
        new = self.path.with_suffix(".new")
        new.write_text(tokens_text(tokens))
        new.replace(self.path)
        return self.names()

    def names(self) -> list[str]:
        self.now += LOOK_S
        return [each.name for each in self.known()]


@pytest.fixture
def followed(tmp_path):
    return Followed(tmp_path)


def test_tokens_come_and_go_with_the_file(followed):
    """Without a file there are none; each change is recorded by names, none at the start."""
    followed.opens()
    assert [] == followed.names()
    assert ["a", "b"] == followed.writes(token("a"), token("b"))
    assert ["b"] == followed.writes(token("b"))
    followed.path.unlink()
    assert [] == followed.names()

    assert [
        ("tokens", {"added": ["a (read)", "b (read)"], "revoked": []}),
        ("tokens", {"added": [], "revoked": ["a"]}),
        ("tokens", {"added": [], "revoked": ["b"]}),
    ] == followed.recorded


def test_a_name_with_another_token_is_recorded_as_both(followed):
    followed.opens()
    followed.writes(token("a"))
    followed.writes(token("a", "other"))

    assert ("tokens", {"added": ["a (read)"], "revoked": ["a"]}) == followed.recorded[-1]


def test_a_file_that_is_damaged_later_changes_nothing(followed):
    """What it said before still holds, and the log has an error."""
    followed.opens()
    followed.writes(token("a"))
    followed.path.write_text("token x\n")

    assert (["a"], 1) == (followed.names(), len(followed.recorded))


def test_a_file_that_is_damaged_at_the_start_is_an_error(followed):
    followed.path.write_text("token x\n")
    with pytest.raises(UsageError, match=r"operators.tokens: .*line 1: expected a line as"):
        followed.opens()
