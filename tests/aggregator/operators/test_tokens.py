"""Tokens: random, kept as hashes, and found by nothing but their text."""

from __future__ import annotations

import hashlib

import pytest

from submerge import UsageError
from submerge_aggregator.operators.tokens import (
    FORM,
    MOST,
    Token,
    digest_of,
    find,
    new_secret,
    parse_tokens,
    tokens_text,
)

NOW = 1_800_000_000.0
LINE = "token night scope judge created 2026-11-24T02:10:00Z until never sha256 " + "ab" * 32


def test_a_token_is_256_random_bits_and_only_its_hash_is_kept():
    secret = new_secret()
    token = Token("night", "judge", NOW, None, digest_of(secret))

    assert FORM.fullmatch(secret)
    assert secret != new_secret()
    assert hashlib.sha256(secret.encode()).hexdigest() == token.digest
    assert secret not in tokens_text([token])


def test_tokens_survive_their_file():
    tokens = (
        Token("night", "judge", NOW, None, digest_of("a")),
        Token("day", "operate", NOW, NOW + 60, digest_of("b")),
        Token("wall", "read", NOW, None, digest_of("c"), ("pumps", "hall.2")),
    )
    assert tokens == parse_tokens(tokens_text(tokens))


def test_a_token_of_an_earlier_version_is_for_all_groups():
    """And one that is limited has its groups at the end of its line, where those read no more."""
    (old,) = parse_tokens(LINE)
    assert () == old.groups
    (limited,) = parse_tokens(f"{LINE} groups pumps,hall")
    assert (("pumps", "hall"), "judge, in pumps, hall") == (limited.groups, limited.words)
    for wrong in ("groups", "groups a b", "groups ,", "groups a\x1bb", "group a"):
        with pytest.raises(UsageError, match="line 1: "):
            parse_tokens(f"{LINE} {wrong}")


def test_a_token_is_found_by_its_text_until_it_ends():
    tokens = [Token(name, "read", NOW, NOW + 10, digest_of(name)) for name in ("a", "b", "c")]

    assert tokens[1] == find(tokens, "b", NOW + 9.9)
    assert find(tokens, "b", NOW + 10) is None
    assert find(tokens, "d", NOW) is None
    assert find(tokens, "", NOW) is None
    assert find((), "a", NOW) is None


def test_a_text_of_any_bytes_is_no_token():
    """Lone surrogates, too: headers come as bytes."""
    assert find([Token("a", "read", NOW, None, digest_of("a"))], "\udcff", NOW) is None


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (f"{LINE}\n{LINE}", "line 2: a second token night"),
        (LINE.replace("judge", "all"), "line 1: a scope is read, judge, operate, got 'all'"),
        (LINE.replace("ab" * 32, "ab"), "line 1: expected 64 hexadecimal digits"),
        (LINE.replace("02:10:00Z", "noon"), "line 1: expected a time like"),
        (LINE.replace("never", "soon"), "line 1: expected a time like"),
        (LINE.replace("night", "night/shift"), "line 1: a token's name is"),
        (
            "\n# note\nsubmerge_secret",
            "line 3: expected a line as `submerge aggregator token new` writes it",
        ),
        (LINE.replace("scope", "scopes"), "line 1: expected a line as"),
    ],
)
def test_a_line_that_is_wrong_is_refused_with_its_number(text, why):
    with pytest.raises(UsageError, match="line") as refused:
        parse_tokens(text)
    assert str(refused.value).startswith(why)
    assert "submerge_secret" not in str(refused.value)


def test_notes_and_empty_lines_are_passed_over():
    assert ["night"] == [each.name for each in parse_tokens(f"\ufeff# a\n\n{LINE} # mine\n")]


def test_more_tokens_than_a_request_should_be_compared_with_are_refused():
    lines = [LINE.replace("night", f"n{i}") for i in range(MOST + 1)]

    with pytest.raises(UsageError, match="at most 1000 tokens"):
        parse_tokens("\n".join(lines))
