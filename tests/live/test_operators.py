"""Operators over the network: real sockets, real certificates, and every refusal."""

from __future__ import annotations

import pytest

pytest.importorskip("cryptography")

import numpy as np

from submerge.protocol.permission import Permission
from support.networked import Networked

ROWS = np.random.default_rng(0).normal(size=(60, 6))


@pytest.fixture
def site(tmp_path):
    with Networked(tmp_path) as site:
        site.house.hears("c", ROWS)
        yield site


def test_a_token_of_scope_operate_gives_orders(site):
    token = site.token("night", "operate")

    assert 200 == site.ask("POST", "/nodes/room/c/quarantine", token_file=token)[0]
    assert [("order", "token night", "127.0.0.1", "quarantine", "c")] == [
        tuple(entry[key] for key in ("event", "by", "address", "verb", "node"))
        for entry in site.recorded
    ]


def test_an_operators_certificate_gives_orders(site):
    kit = site.kit("anna", Permission("operator"))

    assert 200 == site.ask("POST", "/nodes/room/c/quarantine", kit=kit)[0]
    assert ["operator anna"] == [entry["by"] for entry in site.recorded]


def test_without_either_all_is_refused(site):
    assert (401, {"error": "expected an operator's token or certificate, got none"}) == site.bare()
