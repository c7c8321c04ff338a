"""What releases are made of: workflows, the chart, the conda recipe, Debian packages."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement

from submerge import __version__
from submerge_aggregator.config import load
from support.certified import LOOPBACK, Certified

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
CHART = DEPLOY / "helm" / "submerge"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TEMPLATE = CHART / "templates" / "aggregator.yaml"


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_runs_what_it_names_by_hash_and_may_nothing_by_default(path):
    text = path.read_text()
    workflow = yaml.safe_load(text)
    uses = re.findall(r"uses: (.*)", text)
    assert [] == [each for each in uses if not re.fullmatch(r"\S+@[0-9a-f]{40} # v[\d.]+", each)]
    assert {} == workflow["permissions"]
    assert [] == [name for name, job in workflow["jobs"].items() if "timeout-minutes" not in job]
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set() == set(re.findall(r"\bmake ([a-z]+)", text)) - targets


def test_one_action_has_one_hash():
    texts = "".join(path.read_text() for path in WORKFLOWS)
    pins = set(re.findall(r"uses: (\S+)@(\S+)", texts))
    assert len(pins) == len({name for name, _ in pins})


def test_the_chart_and_the_recipe_are_of_this_version():
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    recipe = yaml.safe_load((DEPLOY / "conda" / "recipe.yaml").read_text())
    assert [__version__] * 3 == [
        chart["version"],
        chart["appVersion"],
        recipe["context"]["version"],
    ]


def test_the_recipe_asks_for_what_the_wheel_asks_for():
    """Plain dependencies are required; those of extras have the extras' lower bounds."""
    asked = yaml.safe_load((DEPLOY / "conda" / "recipe.yaml").read_text())["requirements"]
    run = {each.replace(" ", "") for each in asked["run"] if not each.startswith("python ")}
    assert {*PROJECT["dependencies"]} == run
    extras = [Requirement(t) for texts in PROJECT["optional-dependencies"].values() for t in texts]
    bounds = {each.name.replace("prometheus-client", "prometheus_client"): each for each in extras}
    wrong = [
        each
        for each in asked["run_constraints"]
        if str(bounds[each.split()[0]].specifier) != each.split()[1]
    ]
    assert [] == wrong


def test_the_chart_s_configuration_is_an_aggregator_s(tmp_path):
    """With the settings that its template gives: all of them are known, and enough."""
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    given = dict(re.findall(r"name: (SUBMERGE__\w+), value: ([^}{]+)}", TEMPLATE.read_text()))
    assert {"SUBMERGE__KIT", "SUBMERGE__STORE", "SUBMERGE__LISTEN__GRPC__ADDRESS"} == {*given}
    config = tmp_path / "aggregator.toml"
    config.write_text(values["config"])
    environ = {name: value.strip('"') for name, value in given.items()}
    environ["SUBMERGE__KIT"] = str(Certified(tmp_path).kit("root", LOOPBACK))
    known = load(config, environ)
    assert "/var/lib/submerge/aggregator.db" == str(known.store)


def rendered(*options: str) -> list[dict[str, Any]]:
    helm = shutil.which("helm")
    if helm is None:
        pytest.skip("helm is not here")
    command = (helm, "template", "plant", CHART, *options)
    return [*yaml.safe_load_all(subprocess.check_output(command, text=True))]


@pytest.mark.parametrize("options", [(), ("--set", "metrics=true")], ids=["plain", "metrics"])
def test_the_chart_is_one_pod_with_probes_and_the_kit_of_a_secret(options):
    config, service, pods = rendered(*options)
    (box,) = pods["spec"]["template"]["spec"]["containers"]
    assert ["ConfigMap", "Service", "StatefulSet"] == [
        each["kind"] for each in (config, service, pods)
    ]
    assert 1 == pods["spec"]["replicas"]
    assert {"startupProbe", "livenessProbe", "readinessProbe"} <= {*box}
    volumes = pods["spec"]["template"]["spec"]["volumes"]
    assert "submerge-kit" in [each["secret"]["secretName"] for each in volumes if "secret" in each]
    status = next(e["value"] for e in box["env"] if e["name"] == "SUBMERGE__STATUS__ADDRESS")
    assert ("0.0.0.0:8471" if options else "127.0.0.1:8471") == status
