"""Checks of an aggregator: store, addresses, parent; if it runs, whether it is ready."""

from __future__ import annotations

import http.client
import json
import sqlite3
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path

from submerge import UsageError
from submerge_aggregator.config import AggregatorConfig
from submerge_aggregator.listening import listen
from submerge_aggregator.notify.notifier import urls_of
from submerge_aggregator.notify.over_apprise import open_service
from submerge_aggregator.operators.config import tokens_path
from submerge_aggregator.operators.tls_files import operators_tls
from submerge_aggregator.operators.tokens import Token, parse_tokens
from submerge_aggregator.questions.views import socket_of
from submerge_aggregator.storage import Ballast, ballast_of, room_for
from submerge_aggregator.store import APPLICATION_ID, FORM
from submerge_client import clock
from submerge_client.config.links import Endpoint
from submerge_client.config.sizes import size_of_report
from submerge_client.uplink.tls import Tls, identity, served_tls, tls_of
from submerge_files.console.admin_client import AdminClient
from submerge_files.console.units import size_of
from submerge_files.console.ways import NoAnswer, UnixSocket
from submerge_operate.doctor import links, machine
from submerge_operate.doctor.certificates import ShownCertificate, check_certificates
from submerge_operate.doctor.findings import DAY_S, Finding, fails, ok, warning

HOLDS = 96 << 20
"""Bytes of memory without children; a thousand over gRPC need 80 MiB more
(benchmarks/footprint.md)."""

PATIENCE_S = 5.0


def run_checks(config: AggregatorConfig) -> Iterator[Finding]:
    """Check all that an aggregator needs, the cheapest first."""
    parent = config.parent
    above = "the root" if parent is None else f"to {parent.name} at {parent.url}"
    yield ok("aggregator", f"{config.node}, {above}, groups {', '.join(config.groups)}")
    yield from check_certificates(certificates_of(config), config.node, time.time(), kit=config.kit)
    yield from machine.clock(clock.now())
    size = config.store.stat().st_size if config.store.exists() else 0
    held = Ballast(ballast_of(config.store)).held
    yield from machine.disk("store", config.store, spare=size + room_for(size) - held)
    yield from machine.memory(HOLDS + size)
    yield from messages(config)
    running = is_running(config)
    yield from store(config.store, running=running)
    yield from histories(config.store, config.groups, running=running)
    yield from places(config, running=running)
    yield from apprise(config)
    yield from operators(config, time.time())
    mqtt = config.listen.mqtt
    if mqtt is not None:
        yield from links.broker(
            mqtt, "broker", node=config.node, fleet=mqtt.fleet, kit=config.kit, now=time.time()
        )
        yield from links.keeping(mqtt, node=config.node, kit=config.kit)
    if parent is not None:
        yield from links.parent(
            parent,
            name=parent.name,
            node=config.node,
            groups=tuple(config.groups),
            kit=config.kit,
            now=time.time(),
        )


def certificates_of(config: AggregatorConfig) -> list[ShownCertificate]:
    grpc, mqtt, parent = config.listen.grpc, config.listen.mqtt, config.parent
    found = []
    if grpc is not None:
        tls, host = served_tls(grpc, config.kit), grpc.endpoint.host
        # A certificate that is configured here names the host, not the node.
        found.append(ShownCertificate("listen.grpc", host, tls, grpc.cert is None, serves=True))
    if config.operators is not None:
        shown = operators_tls(config.operators, grpc, config.kit)
        host = config.operators.endpoint.host
        by_kit = shown is not None and shown.kit is not None
        found.append(ShownCertificate("operators", host, shown, by_kit, serves=True))
    if mqtt is not None:
        found.append(ShownCertificate("listen.mqtt", mqtt.host, tls_of(mqtt, config.kit)))
    if parent is not None and parent.scheme != "memory":
        found.append(ShownCertificate("parent", parent.host, tls_of(parent, config.kit)))
    return found


def messages(config: AggregatorConfig) -> Iterator[Finding]:
    """Return the size of its largest report; the configuration refuses more than the limit."""
    if config.parent is None:
        return
    sizes = [
        size_of_report(
            group.schema.dim,
            min(group.summary.kept, group.schema.dim),
            merged=True,
            linear=group.summary.linear(group.schema),
        )
        for group in config.groups.values()
        if group.schema is not None
    ]
    limit = config.parent.limit
    if sizes:
        yield ok("messages", f"reports upward have at most {max(sizes)} of {limit} bytes")
    else:
        yield ok("messages", f"at most {limit} bytes; a report's size depends on the root's schema")


def apprise(config: AggregatorConfig) -> Iterator[Finding]:
    """Check that Apprise accepts the configured URLs; only their schemes are shown."""
    settings = config.alarms.apprise
    if settings is None:
        return
    try:
        urls = urls_of(config)
        for url in urls:
            open_service(url)
    except UsageError as error:
        message, _, hint = str(error).partition("; ")
        yield fails("apprise", message, hint or "put one URL on each line")
    else:
        kinds = ", ".join(sorted({url.scheme for url in urls}))
        some = f"{len(urls)} service{'s' * (len(urls) > 1)}"
        yield ok("apprise", f"{some} in {settings.urls_file.name}: {kinds}; nothing was sent")


def is_running(config: AggregatorConfig) -> bool:
    """Return whether an aggregator answers on the socket beside the store."""
    try:
        AdminClient(UnixSocket(socket_of(config.store))).get()
    except (NoAnswer, UsageError):
        return False
    return True


def store(path: Path, *, running: bool) -> Iterator[Finding]:
    """Check that the store is an undamaged store; one in use is left to its owner."""
    if running:
        yield ok("store", f"{path.name} is in use: the aggregator runs")
        return
    if path.is_symlink():
        hint = "name the file itself in `store`"
        yield fails("store", f"{path} is a symbolic link, which an aggregator refuses", hint)
        return
    if not path.exists():
        yield ok("store", f"{path.name} does not exist yet: it will be created")
        return
    try:
        with _opened(path) as sql:
            (owner,) = sql.execute("PRAGMA application_id").fetchone()
            (form,) = sql.execute("PRAGMA user_version").fetchone()
            (verdict,) = sql.execute("PRAGMA quick_check(1)").fetchone()
            rows = 0
            if owner == APPLICATION_ID:
                (rows,) = sql.execute("SELECT count(*) FROM records").fetchone()
    except sqlite3.Error as error:
        if "locked" in str(error):
            hint = "find the process: fuser, or systemctl status submerge-aggregator"
            yield warning("store", f"another process holds {path} and does not answer", hint)
            return
        owner, form, verdict, rows = APPLICATION_ID, FORM, str(error), 0
    if owner != APPLICATION_ID or form > FORM:
        whose = "another program's" if owner != APPLICATION_ID else "a later submerge's"
        yield fails("store", f"{path} is {whose} database", "name another, or update submerge")
    elif form < FORM:
        hint = "start it once with the submerge of that day (commit f0bc8489)"
        yield fails("store", f"{path} is of submerge before 28 November 2026", hint)
    elif verdict != "ok":
        yield fails(
            "store",
            f"{path} is damaged: {verdict.splitlines()[-1]}",
            "move it away: a new one is created, and children start new incarnations",
        )
    else:
        size = size_of(path.stat().st_size)
        yield ok("store", f"{path.name}: {rows} records in {size}; SQLite finds no damage")


def places(config: AggregatorConfig, *, running: bool) -> Iterator[Finding]:
    """Check that its addresses are free; if it runs, that it is ready."""
    if running:
        if config.status.endpoint is not None:
            yield _readiness(config.status.endpoint)
        return
    for setting, endpoint in config.addresses.items():
        try:
            listen(endpoint, setting=setting).close()
        except UsageError as error:
            why = str(error).partition(";")[0]
            hint = f"ss -ltnp 'sport = :{endpoint.port}' shows what listens; or change {setting}"
            yield fails("listen", why, hint)
        else:
            yield ok("listen", f"{endpoint.host}:{endpoint.port} is free")


def _readiness(endpoint: Endpoint) -> Finding:
    # A wildcard address includes this machine's loopback.
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(endpoint.host, endpoint.host)  # noqa: S104
    at = f"http://{f'[{host}]' if ':' in host else host}:{endpoint.port}/readyz"
    connection = http.client.HTTPConnection(host, endpoint.port, timeout=PATIENCE_S)
    try:
        connection.request("GET", "/readyz")
        answer = json.loads(connection.getresponse().read())
    except (OSError, http.client.HTTPException, ValueError) as error:
        hint = "was it started with this configuration?"
        return warning("status", f"{at} does not answer: {error}", hint)
    finally:
        connection.close()
    if answer.get("ready"):
        return ok("status", f"{at}: ready")
    return fails("status", f"{at}: {answer.get('why', 'not ready')}", "see its log and its parent")


OF_HISTORIES = "SELECT count(*) FROM records WHERE key LIKE '[\"history\",%'"


def histories(store: Path, groups: Iterable[str], *, running: bool) -> Iterator[Finding]:
    """Return how many histories are in the store of a root; nothing if there are none."""
    try:
        held = _asked(store, groups) if running else _counted(store)
    except (NoAnswer, UsageError, sqlite3.Error):
        return  # an earlier version; or a store that another check reports
    if held:
        several = "histories live" if held > 1 else "history lives"
        yield ok("histories", f"{held} {several} in {store.name} alone: keep the model files")


def _asked(store: Path, groups: Iterable[str]) -> int:
    admin = AdminClient(UnixSocket(socket_of(store)))
    return sum(len(json.loads(admin.get("histories", group))) for group in groups)


def _counted(store: Path) -> int:
    if not store.is_file() or store.is_symlink():
        return 0
    with _opened(store) as sql:
        return int(sql.execute(OF_HISTORIES).fetchone()[0])


def _opened(store: Path) -> closing[sqlite3.Connection]:
    """Open a store read-only; no lock is held for longer than the check."""
    return closing(sqlite3.connect(f"file:{store.absolute()}?mode=ro", uri=True, timeout=0))


SOON_S = 14 * DAY_S  # time before a token's end from which to warn; at most a quarter of its life

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
    for token in tokens:
        if token.until is None:
            continue
        again = f"submerge aggregator token revoke {token.name}, then submerge aggregator token new"
        if token.has_ended(now):
            yield warning("operators", f"token {token.name} has ended", again)
        elif token.until - now < min(SOON_S, (token.until - token.created) / 4):
            days = (token.until - now) / DAY_S
            yield warning("operators", f"token {token.name} ends in {days:.0f} days", again)
