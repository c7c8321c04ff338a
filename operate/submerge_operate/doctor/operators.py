"""Checks of [operators]: tokens that can be read and are not over, and who could get in."""

from __future__ import annotations

import stat
from collections.abc import Iterator

from submerge import UsageError
from submerge_aggregator.config import AggregatorConfig
from submerge_aggregator.operators.config import tokens_path
from submerge_aggregator.operators.tls_files import operators_tls
from submerge_aggregator.operators.tokens import Token, parse_tokens
from submerge_client.uplink.tls import Tls, identity
from submerge_operate.doctor.findings import DAY_S, Finding, fails, ok, warning

SOON_S = 14 * DAY_S
"""Time before the end of a token from which to warn; at most a quarter of its life."""

MAKE = "submerge aggregator token new NAME --scope read --config FILE"


def operators(config: AggregatorConfig, now: float) -> Iterator[Finding]:
    """Check who may give orders over the network; nothing where that is not configured."""
    if config.operators is None:
        return
    path = tokens_path(config.operators, config.store)
    try:
        mode = path.stat().st_mode
        tokens = parse_tokens(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        mode, tokens = stat.S_IFREG | 0o600, ()
    except (OSError, UsageError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or str(error)
        hint = "run this as the aggregator's user; or repair the line, or make the token again"
        yield fails("operators", f"{path}: {why}", hint)
        return
    if mode & 0o022:
        hint = (
            f"chmod 600 {path}, and look for tokens that you do not know:"
            " submerge aggregator token list"
        )
        yield fails("operators", f"others on this machine can add tokens to {path}", hint)
    yield from _ends(tokens, now)
    tls = operators_tls(config.operators, config.listen.grpc, config.kit)
    yield from _names(config.node, tls)
    by_certificate = tls is not None and (tls.kit is not None or tls.ca is not None)
    valid = sum(not token.has_ended(now) for token in tokens)
    if not valid and not by_certificate:
        yield warning("operators", "no token is valid, and certificates are not accepted", MAKE)
        return
    kits = ", and kits with role operator or reader" if by_certificate else ""
    count = f"{valid} token{'s' * (valid != 1)}"
    yield ok("operators", f"{config.operators.address}: {count}{kits}")


def _names(node: str, tls: Tls | None) -> Iterator[Finding]:
    """Check that the kit names a host: commands compare it with that of --at."""
    if tls is None or tls.kit is None:
        return
    try:
        hosts = identity(tls).hosts
    except UsageError:
        return  # another check reports it
    if not hosts:
        hint = f"submerge pki renew {node} --host NAME_OR_IP, for each that --at uses"
        yield fails("operators", f"{tls.kit.name} names no host, so commands will refuse it", hint)


def _ends(tokens: tuple[Token, ...], now: float) -> Iterator[Finding]:
    """Name the tokens that are over, or will be soon."""
    for token in tokens:
        if token.until is None:
            continue
        again = f"submerge aggregator token revoke {token.name}, then submerge aggregator token new"
        if token.has_ended(now):
            yield warning("operators", f"token {token.name} has ended", again)
        elif token.until - now < min(SOON_S, (token.until - token.created) / 4):
            days = (token.until - now) / DAY_S
            yield warning("operators", f"token {token.name} ends in {days:.0f} days", again)
