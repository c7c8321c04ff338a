"""docker-compose.yml and what it mounts: the files belong together, before any engine is asked.

That they work is tests/live/compose.sh's to show.
"""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

pytest.importorskip("msgspec")

from submerge_aggregator.config import AggregatorConfig
from submerge_client.config.client_config import ClientConfig
from submerge_client.config.tomlfile import read
from submerge_lab.crowd.motes import OVERSAMPLE, RANK, SCHEMA

ROOT = Path(__file__).parents[3]
FILES = ROOT / "deploy" / "compose"
COMPOSE = (ROOT / "docker-compose.yml").read_text()
KINDS = {
    **dict.fromkeys(("root", "north", "south"), AggregatorConfig),
    **dict.fromkeys(("host-north", "host-south"), ClientConfig),
}


def config(name):
    """What a node is told; its name is its kit's, and kits are not there."""
    return read(FILES / f"{name}.toml", KINDS[name], {"SUBMERGE__NODE": name})


def listed():
    """Rows of nodes.csv: whose kits are made, and where each is laid."""
    with (FILES / "nodes.csv").open() as lines:
        return {row["node"]: row for row in csv.DictReader(lines)}


@pytest.mark.parametrize("name", KINDS)
def test_each_configuration_loads_and_is_mounted(name):
    """And names a kit that is made, and laid into the volume that its service sees."""
    assert f"/run/kit/{name}.kit" == str(config(name).kit)
    assert name == listed()[name]["service"]
    assert f"./deploy/compose/{name}.toml:/etc/submerge/" in COMPOSE
    assert f"kit-{name}:/run/kit:ro" in COMPOSE


def test_groups_are_the_same_everywhere():
    """Schemas and ranks: else reports would be refused, or merges inexact."""
    groups = config("root").groups
    assert SCHEMA.fingerprint == groups["room"].schema.built.fingerprint
    assert (RANK, OVERSAMPLE) == (groups["room"].summary.rank, groups["room"].summary.oversample)
    for name in ("north", "south"):
        assert {group: each.summary for group, each in groups.items()} == {
            group: each.summary for group, each in config(name).groups.items()
        }
    for name in ("host-north", "host-south"):
        assert groups["hosts"].schema == config(name).schema
        assert groups["hosts"].summary == config(name).summary.shared


def test_every_node_of_a_crowd_has_a_kit():
    """As many as its command asks for, in the volume that it sees."""
    crowds = re.findall(r"(crowd-\w+):\n.*?--prefix (\S+)\s+--nodes (\d+)", COMPOSE, re.DOTALL)
    assert ["crowd-north", "crowd-south"] == [name for name, _, _ in crowds]
    for name, prefix, nodes in crowds:
        laid = {node for node, row in listed().items() if row["service"] == name}
        assert {f"{prefix}{i + 1}" for i in range(int(nodes))} == laid
        assert f"kit-{name}:/run/kit:ro" in COMPOSE


def test_who_has_children_has_a_name_to_be_called_by():
    """Its service's, which is its name in the networks; who has none is a client."""
    called = {node for node, row in listed().items() if row["hosts"]}

    assert {"root", "north", "broker"} == called
    assert all(node in row["hosts"].split() for node, row in listed().items() if row["hosts"])


def test_each_kit_has_the_role_of_its_service():
    """Rules of the broker go by it, for an aggregator without hosts as well."""
    for node, row in listed().items():
        kind = KINDS.get(node, ClientConfig)
        role = "aggregator" if kind is AggregatorConfig else "client"
        assert (role if node != "broker" else "reader") == row["role"], node
        if kind is ClientConfig and node != "broker":
            group = config(node).group if node in KINDS else "room"
            assert group == row["groups"]


def test_the_broker_gets_what_its_settings_name():
    """Kit, rules and revoked certificates, from the one volume that the pki service fills."""
    settings = (ROOT / "deploy/mosquitto/mosquitto.conf").read_text()
    laid = (FILES / "pki.sh").read_text()

    named = set(re.findall(r"^\w+ /mosquitto/kit/(\S+)", settings, re.MULTILINE))
    assert {"broker.kit", "acl", "crl.pem"} == named
    for name in ("acl", "crl.pem"):
        assert f"lay /pki/{name} broker {name}\n" in laid
    assert "kit-broker:/mosquitto/kit:ro" in COMPOSE


def test_the_pki_service_reads_the_columns_of_the_list():
    """In their order."""
    heading = (FILES / "nodes.csv").read_text().split("\n")[0]

    assert f"IFS=, read -r {heading.replace(',', ' ')};" in (FILES / "pki.sh").read_text()


def test_the_authoritys_key_is_the_pki_services_alone():
    """No other service mounts its volume, and kits are mounted to be read."""
    assert 1 == COMPOSE.count("- pki:/pki")
    elsewhere = re.findall(r"- kit-\S+:(?!/kits/)\S+", COMPOSE)
    assert 8 == len(elsewhere)
    assert all(mount.endswith(":ro") for mount in elsewhere)


def test_aggregators_read_the_roster_and_the_revoked_list_that_the_pki_service_lays():
    pki = (FILES / "pki.sh").read_text()
    for name in ("root", "north", "south"):
        assert "/run/kit/roster.csv" == str(config(name).listen.roster)
        assert "/run/kit/revoked" == str(config(name).security.revoked)
    assert "for aggregator in root north south; do" in pki
    for file in ("roster.csv", "revoked"):
        assert f'lay /pki/{file} "$aggregator" {file}' in pki
