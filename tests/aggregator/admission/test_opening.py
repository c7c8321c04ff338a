"""From a configuration to an admission: files at the start, and what the log says."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from submerge import UsageError
from submerge.protocol.permission import Permission
from submerge_aggregator.admission.control import make_admission
from submerge_aggregator.config import AggregatorConfig
from submerge_aggregator.downlink import PeerIdentity
from submerge_client.config.tomlfile import decoded

KIT = {"kit": "root.kit"}
MQTTS = {"mqtt": {"url": "mqtts://broker"}}


def config(listen: dict[str, Any], **more: Any) -> AggregatorConfig:
    table = {
        "node": "root",
        "store": "root.db",
        "listen": listen,
        "groups": {
            "g": {
                "schema": {"channels": ["a", "b"]},
                "summary": {"rank": 1},
                "nodes": ["pump-*"],
            }
        },
    }
    return decoded(table | more, AggregatorConfig)


def said(caplog: Any) -> list[str]:
    return [record.getMessage() for record in caplog.records]


OLD = "kits from before there were roles are let in"


@pytest.mark.parametrize(
    ("listen", "more", "lines"),
    [
        ({"grpc": {"insecure": True}}, {}, []),
        ({"grpc": {}}, KIT, [OLD]),
        ({"grpc": {}, "legacy_kits": False}, KIT, ["kits without a role are refused"]),
        ({"grpc": {"cert": "c", "key": "k"}}, {}, []),
        (
            {"grpc": {"cert": "c", "key": "k", "ca": "a"}},
            {},
            [OLD],
        ),
        (MQTTS, KIT, ["no roster"]),
        ({**MQTTS, "aggregators": ["north"]}, KIT, []),
        ({"mqtt": {"url": "mqtt://broker", "insecure": True}}, {}, []),
    ],
)
def test_the_start_says_how_nodes_without_a_role_are_treated(listen, more, lines, caplog):
    """Where names are proven; elsewhere there is nothing to say."""
    with caplog.at_level(logging.INFO):
        make_admission(config(listen, **more))

    assert lines == said(caplog)


def test_patterns_are_taken_over():
    control = make_admission(config({"grpc": {"insecure": True}}))
    certified = PeerIdentity("certificate", Permission("client").uris, 1)

    assert control.objection_to_watch(certified, "pump-7", "g") is None
    why = control.objection_to_watch(certified, "Pump-7", "g")
    assert why == "[groups.g] nodes does not list Pump-7"


@pytest.mark.parametrize("setting", ["listen.roster", "security.revoked"])
def test_a_file_that_is_missing_at_the_start_is_one_line(tmp_path, setting):
    missing = str(tmp_path / "missing")
    listen = {"grpc": {"insecure": True}}
    wrong = (
        config({**listen, "roster": missing})
        if setting == "listen.roster"
        else config(listen, security={"revoked": missing})
    )
    with pytest.raises(UsageError, match=f"{setting}: expected a file to read, got .*missing"):
        make_admission(wrong)
