"""docker-compose.yml's profile `monitoring`: only when asked for, without a password, and whole.

Neither Prometheus nor Grafana is run here in a container; Debian's promtool reads what Prometheus
is given.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from submerge_aggregator.config import AggregatorConfig
from submerge_client.config.tomlfile import read
from support.promtool import PROMTOOL, needs_promtool

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).parents[3]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
MONITORING = {name for name, each in SERVICES.items() if "profiles" in each}
AGGREGATORS = ("root", "north", "south")
SCRAPED = yaml.safe_load((ROOT / "deploy/prometheus/prometheus.yml").read_text())


def test_a_fleet_without_the_profile_is_what_it_was():
    """Two services more with it; no other depends on them, or publishes a port."""
    assert {"prometheus", "grafana"} == MONITORING
    for name in MONITORING:
        assert ["monitoring"] == SERVICES[name]["profiles"]
    for name in SERVICES.keys() - MONITORING:
        assert not MONITORING & set(SERVICES[name].get("depends_on", ()))
        assert "ports" not in SERVICES[name]


def test_aggregators_show_metrics_to_others_only_when_asked():
    """The address is that of a configuration without `[status]`, unless the caller says else."""
    for name in AGGREGATORS:
        text = SERVICES[name]["environment"]["SUBMERGE__STATUS__ADDRESS"]
        (usual,) = re.findall(r"\$\{STATUS_ADDRESS:-(.*)\}", text)
        file = ROOT / "deploy" / "compose" / f"{name}.toml"
        for address in (usual, "0.0.0.0:8471"):
            environ = {"SUBMERGE__NODE": name, "SUBMERGE__STATUS__ADDRESS": address}
            config = read(file, AggregatorConfig, environ)
            assert address == config.status.address
        plain = read(file, AggregatorConfig, {"SUBMERGE__NODE": name})
        assert usual == plain.status.address


@pytest.mark.parametrize("name", sorted(MONITORING))
def test_they_are_pinned_confined_and_seen_on_this_machine_alone(name):
    service = SERVICES[name]

    assert re.fullmatch(r"\$\{[A-Z]+:-[\w./]+:v?\d+\.\d+\.\d+\}", service["image"])
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    assert (True, ["ALL"]) == (service["read_only"], service["cap_drop"])
    assert "512m" == service["mem_limit"]


def test_there_is_no_password():
    """Grafana makes no account; those who come look, and change nothing."""
    environ = SERVICES["grafana"]["environment"]

    assert [] == [name for name in environ if "PASSWORD" in name or "SECRET" in name]
    assert "true" == environ["GF_SECURITY_DISABLE_INITIAL_ADMIN_CREATION"]
    assert "true" == environ["GF_AUTH_DISABLE_LOGIN_FORM"]
    assert "Viewer" == environ["GF_AUTH_ANONYMOUS_ORG_ROLE"]


@pytest.mark.parametrize("name", sorted(MONITORING))
def test_what_they_mount_is_there(name):
    """Files of the repository, to be read; and a volume that is declared."""
    for mount in SERVICES[name]["volumes"]:
        source, _, rest = mount.partition(":")
        if source.startswith("./"):
            assert (ROOT / source).exists()
            assert rest.endswith(":ro")
        else:
            assert source in COMPOSE["volumes"]


def test_grafana_finds_prometheus_and_the_dashboard():
    (source,) = yaml.safe_load((ROOT / "deploy/grafana/datasource.yml").read_text())["datasources"]
    (found,) = yaml.safe_load((ROOT / "deploy/grafana/dashboards.yml").read_text())["providers"]
    (dashboard,) = [m for m in SERVICES["grafana"]["volumes"] if "submerge.json" in m]

    assert "http://prometheus:9090" == source["url"]
    assert dashboard.split(":")[1].startswith(found["options"]["path"] + "/")
    assert set(SERVICES["grafana"]["networks"]) <= set(SERVICES["prometheus"]["networks"])


def test_prometheus_scrapes_every_aggregator_where_it_can_reach_it():
    (job,) = SCRAPED["scrape_configs"]
    targets = [target for each in job["static_configs"] for target in each["targets"]]

    assert [f"{name}:8471" for name in AGGREGATORS] == targets
    for name in AGGREGATORS:
        assert set(SERVICES["prometheus"]["networks"]) & set(SERVICES[name]["networks"])


@needs_promtool
def test_prometheus_takes_its_configuration_and_the_rules():
    done = subprocess.run(
        [PROMTOOL, "check", "config", "prometheus.yml"],
        capture_output=True,
        text=True,
        cwd=ROOT / "deploy" / "prometheus",
    )

    assert 0 == done.returncode, done.stdout + done.stderr
    assert re.search(r"SUCCESS: \d+ rules found", done.stdout)
