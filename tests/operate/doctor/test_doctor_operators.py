"""`submerge doctor` on [operators]: who could give orders over the network, and until when."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("cryptography")

from msgspec.structs import replace

from submerge.protocol.permission import Permission
from submerge_aggregator.config import AggregatorConfig
from submerge_aggregator.operators.tokens import Token, digest_of, tokens_text
from submerge_client.config.tomlfile import decoded
from submerge_operate.doctor.aggregator import certificates_of, operators
from submerge_operate.doctor.findings import DAY_S
from support.certified import LOOPBACK, Certified

NOW = 1_800_000_000.0


def config_of(folder: Path, *, kit: Path | None = None, **settings: Any) -> AggregatorConfig:
    """A root's."""
    table: dict[str, Any] = {
        "node": "root",
        "store": str(folder / "root.db"),
        "listen": {"grpc": {"insecure": True}},
        "groups": {"g": {"summary": {"rank": 1}, "schema": {"channels": ["a", "b"]}}},
        "operators": settings,
    }
    if kit is not None:
        table["kit"] = str(kit)
    return decoded(table, AggregatorConfig)


def insecure(folder: Path) -> AggregatorConfig:
    return config_of(folder, insecure=True, address="127.0.0.1:8472")


def kept(folder: Path, *tokens: Token, mode: int = 0o600) -> Path:
    """Write the file of tokens."""
    path = folder / "root.db.tokens"
    path.write_text(tokens_text(tokens))
    path.chmod(mode)
    return path


def token(name: str, days: float | None = None, *, made_days_ago: float = 0.0) -> Token:
    until = None if days is None else NOW + days * DAY_S
    return Token(name, "read", NOW - made_days_ago * DAY_S, until, digest_of(name))


def found(config: AggregatorConfig) -> list[tuple[str, str]]:
    return [(each.state, each.message) for each in operators(config, NOW)]


def test_without_the_section_nothing_is_said(tmp_path):
    assert [] == found(replace(insecure(tmp_path), operators=None))


def test_tokens_that_are_valid_are_counted(tmp_path):
    kept(tmp_path, token("a"), token("b", 60, made_days_ago=1))

    assert [("ok", "127.0.0.1:8472: 2 tokens")] == found(insecure(tmp_path))


def test_without_tokens_and_certificates_no_operator_gets_in(tmp_path):
    says = ("warning", "no token is valid, and certificates are not accepted")

    assert [says] == found(insecure(tmp_path))
    kept(tmp_path, token("a", -1))
    assert [("warning", "token a has ended"), says] == found(insecure(tmp_path))


def test_a_token_that_ends_soon_is_named(tmp_path):
    kept(tmp_path, token("a", 10, made_days_ago=80))

    assert ("warning", "token a ends in 10 days") == found(insecure(tmp_path))[0]


def test_a_file_that_cannot_be_read_fails(tmp_path):
    path = kept(tmp_path)
    path.write_text("token x\n")

    ((state, message),) = found(insecure(tmp_path))
    assert ("fails", True) == (state, "line 1: expected a line as" in message)


def test_a_file_that_others_can_write_fails(tmp_path):
    """They could add a token of their own."""
    kept(tmp_path, token("a"), mode=0o666)

    assert ("fails", "ok") == tuple(state for state, _ in found(insecure(tmp_path)))


@pytest.mark.parametrize("hosts", [(), (LOOPBACK,)])
def test_a_kit_without_a_host_is_no_servers(tmp_path, hosts):
    kit = Certified(tmp_path).kit("root", *hosts, permission=Permission("aggregator"))
    said = found(config_of(tmp_path, kit=kit))

    fails = [message for state, message in said if state == "fails"]
    assert ([] if hosts else ["root.kit names no host, so commands will refuse it"]) == fails
    assert ("ok", "0.0.0.0:8472: 0 tokens, and kits with role operator or reader") == said[-1]


def test_its_certificate_is_checked_as_the_others_are(tmp_path):
    kit = Certified(tmp_path).kit("root", LOOPBACK, permission=Permission("aggregator"))
    shown = {each.setting: each for each in certificates_of(config_of(tmp_path, kit=kit))}

    assert (kit, True) == (shown["operators"].tls.kit, shown["operators"].serves)
    assert certificates_of(insecure(tmp_path))[-1].tls is None
