"""assembled(): a client from its configuration, ready to run; each part loaded if it is used."""

from __future__ import annotations

import logging
import os
import sys
from typing import BinaryIO

import numpy as np

from submerge.client.node import ClientNode
from submerge_client import clock
from submerge_client.agent import Agent
from submerge_client.alarms.factory import links_of, sinks_of
from submerge_client.checkpoint import CheckpointFile
from submerge_client.config.client_config import ClientConfig, MqttSensor
from submerge_client.disk import RecordStore
from submerge_client.logs import remark, say
from submerge_client.scores import ScoreLines, Tell
from submerge_client.sensors import opened
from submerge_client.sensors.lags import Lags
from submerge_client.uplink.factory import Allowed, make_uplink, tls_of, warn_of_insecure
from submerge_client.uplink.identity import Credentials
from submerge_client.watchdog import Watchdog


def build_agent(config: ClientConfig, *, stdout: BinaryIO | None = None) -> Agent:
    """Return an agent that has not started yet.

    Raises
    ------
    UsageError
        If something that the configuration names is not there.
    """
    credentials = Credentials(tls_of(config.uplink, config.kit), node=config.node)
    schema = config.built_schema
    names = [channel.name for channel in config.schema.sensed]
    sensor = opened(config.sensor, names, note=remark)
    # Names and waits that no other node draws.
    node = ClientNode(config.settings, schema, config.summaries, np.random.default_rng())
    scores, out = None, sys.stdout.buffer if stdout is None else stdout
    if config.scores.to != "none":
        scores = ScoreLines(
            schema,
            contributions=config.scores.contributions,
            tell=_ear(config, out),
        )
    warn_of_insecure(_links(config), idle=None if config.takes_kit else config.kit)
    uplink = make_uplink(
        config.uplink,
        parent=config.parent,
        node=config.node,
        groups=(config.group,),
        kit=config.kit,
    )
    return Agent(
        node,
        uplink=uplink,
        sensor=sensor,
        disk=_disk(config),
        lags=Lags(config.schema.lags, len(config.schema.sensed)),
        scores=scores,
        sinks=sinks_of(config, out),
        clock=clock.now,
        coarse=config.uplink.columns == "i8",
        credentials=credentials,
        watchdog=Watchdog(config.silence_s, alive=config.watch.alive, environ=os.environ),
    )


def _links(config: ClientConfig) -> dict[str, Allowed | None]:
    """Each way out, by its setting."""
    scores = config.scores_link if config.scores.to == "mqtt" else None
    sensor = config.sensor if isinstance(config.sensor, MqttSensor) else None
    return {"uplink": config.uplink, "scores": scores, "sensor": sensor, **links_of(config)}


def _disk(config: ClientConfig) -> RecordStore:
    """The checkpoint; a disk that does not work is no reason not to measure."""
    try:
        return RecordStore(CheckpointFile(config.state))
    except OSError as error:
        say("no checkpoint: a restart begins from zero", level=logging.ERROR, why=str(error))
        return RecordStore(None)


def _ear(config: ClientConfig, stdout: BinaryIO) -> Tell:
    """Who is told the scores."""
    if config.scores.to == "mqtt":
        from submerge_client.scores_mqtt import Publisher

        return Publisher(config.scores_link, config.node, config.kit).tell

    deaf = False

    def tell(lines: bytes) -> None:
        nonlocal deaf
        if deaf:
            return
        try:
            stdout.write(lines)
            stdout.flush()
        except OSError as error:
            # Whoever listened is gone; the node learns and reports all the same.
            deaf = True
            say("scores no longer told", level=logging.WARNING, why=str(error))

    return tell
