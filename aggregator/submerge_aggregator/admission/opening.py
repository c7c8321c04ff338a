"""make_admission(): the admission that a configuration asks for, and what the log says of it."""

from __future__ import annotations

import logging

from submerge_aggregator.admission.control import AdmissionControl
from submerge_aggregator.admission.decision import AdmissionRules
from submerge_aggregator.admission.revoked import parse_revoked
from submerge_aggregator.admission.roster import parse_roster
from submerge_aggregator.admission.watched_file import WatchedFile
from submerge_aggregator.config import AggregatorConfig
from submerge_client.logs import say


def make_admission(config: AggregatorConfig) -> AdmissionControl:
    """Return who may do what, by a configuration.

    Raises UsageError if the roster or the list of what is revoked is missing or wrong.
    """
    listen, revoked = config.listen, config.security.revoked
    rules = AdmissionRules(
        listen.aggregators,
        {name: each.nodes for name, each in config.groups.items() if each.nodes is not None},
        listen.legacy_kits,
    )
    control = AdmissionControl(
        rules,
        roster=None
        if listen.roster is None
        else WatchedFile(listen.roster, parse_roster, setting="listen.roster"),
        revoked=None
        if revoked is None
        else WatchedFile(revoked, parse_revoked, setting="security.revoked"),
    )
    _say_how(config)
    return control


def _say_how(config: AggregatorConfig) -> None:
    """Say how nodes without a role are treated, where there is a proof of who they are."""
    listen, grpc, mqtt = config.listen, config.listen.grpc, config.listen.mqtt
    listed = listen.roster is not None or listen.aggregators is not None
    if grpc is not None and not grpc.insecure and (grpc.cert is None or grpc.ca is not None):
        if listen.legacy_kits:
            meaning = "each keeps its role in the roster or in the store; new ones are clients"
            todo = "once all kits have a role (submerge_legacy_kits is 0): legacy_kits = false"
            say("kits without a role are let in", link="listen.grpc", meaning=meaning, todo=todo)
        else:
            say("kits without a role are refused", link="listen.grpc")
    if mqtt is not None and not mqtt.insecure and not listed:
        meaning = "a broker shows no certificates: names keep their role in the store"
        todo = "a new aggregator needs listen.roster or listen.aggregators"
        level = logging.WARNING
        say("no roster", level=level, link="listen.mqtt", meaning=meaning, todo=todo)
