"""Checks of a client: links, disk, memory, size of messages, sensor."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator

import numpy as np

from submerge import UsageError
from submerge_client import clock
from submerge_client.config.client_config import ClientConfig
from submerge_client.trial import TAKEN, listen, unknown_names
from submerge_client.uplink.tls import tls_of
from submerge_files.console.units import in_words, size_of
from submerge_operate.doctor import links, machine
from submerge_operate.doctor.certificates import ShownCertificate, check_certificates
from submerge_operate.doctor.findings import Finding, fails, ok, warning

OVER_MQTT, OVER_GRPC = 48 << 20, 64 << 20
"""Bytes of memory of a client with 54 channels (benchmarks/footprint.md)."""

ROOM_ROWS = 100  # rows in memory while learning, in addition to the directions

PIPE = "your-program | submerge doctor --config FILE"

LONGEST_WAIT_S = 60.0  # a slower sensor is not tried


def run_checks(config: ClientConfig) -> Iterator[Finding]:
    """Check all that a client needs, the cheapest first."""
    uplink = config.uplink
    yield ok("client", f"{config.node} of {config.group}, to {config.parent} at {uplink.url}")
    yield from check_certificates(certificates_of(config), config.node, time.time(), kit=config.kit)
    yield from machine.clock(clock.now())
    yield from machine.disk("state", config.state, spare=4 * config.largest_report)
    yield from machine.memory(memory_of(config))
    yield messages(config)
    if config.share_points:
        yield ok(
            "readings",
            f"at most {config.share_points} in 24 hours may leave as they are (share_points),"
            " for jobs that an aggregator above opens",
        )
    yield from links.parent(
        uplink,
        name=config.parent,
        node=config.node,
        groups=(config.group,),
        kit=config.kit,
        now=time.time(),
    )
    if config.scores.to == "mqtt" and config.scores_link.url != uplink.url:
        link = config.scores_link
        node, kit = config.node, config.kit
        yield from links.broker(
            link, "scores", node=node, fleet=link.fleet, kit=kit, now=time.time()
        )
    yield from sensor(config)


def certificates_of(config: ClientConfig) -> list[ShownCertificate]:
    found = [ShownCertificate("uplink", config.uplink.host, tls_of(config.uplink, config.kit))]
    if config.uplink.scheme == "memory":
        found = []
    if config.scores.to == "mqtt":
        link = config.scores_link
        found.append(ShownCertificate("scores", link.host, tls_of(link, config.kit)))
    sensed = config.sensor.link
    if sensed is not None:
        # It may be another plant's broker, where this node has another name.
        found.append(ShownCertificate("sensor", sensed.host, tls_of(sensed), as_node=False))
    return list(dict.fromkeys(found))


def memory_of(config: ClientConfig) -> int:
    """Return about how many bytes of memory a client needs."""
    base = OVER_GRPC if config.uplink.scheme in ("grpc", "grpcs") else OVER_MQTT
    kept = min(config.summary.kept, config.schema.dim)
    return base + 8 * config.schema.dim * (ROOM_ROWS + 8 * kept)


def messages(config: ClientConfig) -> Finding:
    """Return the size of its largest report; the configuration refuses more than the limit."""
    every, limit = config.timing.report_every_s, config.uplink.limit
    size = config.largest_report
    return ok(
        "messages",
        f"at most {size} of {limit} bytes every {in_words(every)},"
        f" {size_of(size * 86400 / every)} a day",
    )


def sensor(
    config: ClientConfig, *, is_terminal: Callable[[], bool] = lambda: sys.stdin.isatty()
) -> Iterator[Finding]:
    if config.sensor.reads_input and is_terminal():
        yield warning("sensor", "not tried: it reads standard input, which is this terminal", PIPE)
        return
    if config.period_s > LONGEST_WAIT_S:
        yield warning(
            "sensor",
            f"not tried: it delivers a row every {in_words(config.period_s)}",
            "SUBMERGE__SENSOR__PERIOD_S=5 submerge doctor --config FILE",
        )
        return
    try:
        heard = listen(config, seconds=10.0 + config.period_s + config.sensor.late_s, enough=1)
    except (UsageError, OSError) as error:
        yield fails("sensor", str(error), "correct [sensor], or what it names")
        return
    # What it left out is often the reason for no rows.
    left_out = [f"{n} {what}" for what, n in heard.counts.items() if n and what not in TAKEN]
    names = [channel.name for channel in config.schema.sensed]
    also = f"; left out: {', '.join(left_out)}" if left_out else ""
    also += "".join(f"; {problem}" for problem in heard.problems)
    also += f"; {unknown_names(heard.unknown, names)}" if heard.unknown else ""
    if not len(heard.rows):
        hint = "submerge client --test --config FILE shows more"
        message = f"no row in {in_words(heard.seconds)}"
        if heard.ended and config.sensor.reads_input:
            message = "standard input ended without a row"
            hint = hint if left_out else f"pipe your program into doctor: {PIPE}"
        if config.sensor.hears_devices and not also:
            # The broker was reached: what fails there is counted.
            hint = f"devices on batteries speak once in minutes; else: {config.sensor.advice}"
            yield warning("sensor", f"{message}; no device has spoken", hint)
            return
        yield fails("sensor", f"{message}{also}", hint)
        return
    known = ~np.isnan(heard.rows)
    gaps = [name for i, name in enumerate(names) if not known[:, i].any()]
    message = f"a row of {len(names)} channels after {in_words(heard.seconds)}{also}"
    if gaps:
        message = f"{message}; nothing of {', '.join(gaps[:5])}" + (" ..." if len(gaps) > 5 else "")
        yield warning("sensor", message, "is it connected, and is the name right?")
    elif config.sensor.ends:
        yield ok("sensor", f"{message}; the client ends at the end of the file")
    else:
        yield ok("sensor", message)
