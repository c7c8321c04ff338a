"""Past alarms and versions of models: what is kept of them, and how it is asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from submerge.pca.subspace import Subspace
from submerge.protocol.messages import Counts
from submerge.protocol.summaries import Method
from submerge_aggregator.history import answers
from submerge_aggregator.history.recorder import angle_between, version_row
from support.alarmed import ROWS, alarm, message
from support.house import SCHEMA, House
from support.nodes import EPOCH, GROUP

MIB = 1 << 20


def past_alarms(house: House, query: str = "") -> Any:
    answer = house.asks("GET", f"/past-alarms/{GROUP}{query}")
    assert 200 == answer.status, answer.body
    return answer.json


def test_alarms_that_are_over_or_judged_are_kept(tmp_path: Path) -> None:
    """The newest first, in their newest state; one that is open and not judged is no past alarm."""
    with House(tmp_path, history_bytes=MIB) as house:
        message(house, "c", alarm(number=1, ended=5.0), alarm(number=2))
        message(house, "c", alarm(number=1, ended=5.0), alarm(number=2, verdict="rejected"))
        message(house, "c", alarm(number=2, verdict="rejected", ended=9.0), alarm(number=3))
        found = past_alarms(house)

        assert [("c-2", EPOCH + 9, "rejected"), ("c-1", EPOCH + 5, "")] == [
            (each["id"], each["ended"], each["verdict"]) for each in found["alarms"]
        ]
        assert not found["more"]
        assert {"mote-1": 0.75, "mote-4": 0.25} == found["alarms"][0]["top"]


def test_they_outlive_the_report_that_brought_them(tmp_path: Path) -> None:
    """A node that no longer reports an alarm takes nothing away; nor does another start."""
    for first in (True, False):
        with House(tmp_path, history_bytes=MIB) as house:
            if first:
                message(house, "c", alarm(number=1, ended=5.0))
                message(house, "c", alarm(number=7))

            assert ["c-1"] == [each["id"] for each in past_alarms(house)["alarms"]]


def test_pages_of_one_moment_lose_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Page after page, each alarm comes once, also where more ended at one time than fit a page."""
    monkeypatch.setattr(answers, "MOST_ALARMS", 2)
    with House(tmp_path, history_bytes=MIB) as house:
        for node, ended in {"a": 5.0, "b": 6.0, "c": 6.0, "d": 6.0, "e": 8.0}.items():
            message(house, node, alarm(node=node, ended=ended))
        pages, query = [past_alarms(house)], ""
        while pages[-1]["more"]:
            last = pages[-1]["alarms"][-1]
            query = f"?before={last['ended']!r}&after={last['id']}"
            pages.append(past_alarms(house, query))

        assert [["e-1", "b-1"], ["c-1", "d-1"], ["a-1"]] == [
            [each["id"] for each in page["alarms"]] for page in pages
        ]
        assert 400 == house.asks("GET", f"/past-alarms/{GROUP}?before=nan").status
        assert 404 == house.asks("GET", "/past-alarms/nowhere").status


def test_versions_have_their_spectrum_and_the_angle_to_the_one_before(tmp_path: Path) -> None:
    """The newest comes first, one in five minutes is kept, and none without readings."""
    rng = np.random.default_rng(1)
    with House(tmp_path, history_bytes=MIB) as house:
        for at in range(6):
            house.hears("c", ROWS + at * rng.normal(size=ROWS.shape), lifetime=60)
            house.passes(160.0)
        found = house.asks("GET", f"/versions/{GROUP}").json["versions"]

        assert 3 == len(found)
        assert found == sorted(found, key=lambda each: -each["version"])
        newest, middle, first = found
        assert first["angle_deg"] is None
        assert 0.0 < newest["angle_deg"] <= 90.0
        assert 0.0 < middle["angle_deg"] <= 90.0
        assert (1, 60, 2) == (newest["nodes"], newest["readings"], newest["rank"])
        assert newest["spectrum"] == sorted(newest["spectrum"], reverse=True)


@pytest.mark.parametrize("nodes", [2, 7])
def test_versions_have_the_ranks_that_nodes_chose(tmp_path: Path, nodes: int) -> None:
    """Each node's, of many the least, the median and the most; one without a rule has none."""
    chosen = {f"c-{at}": 10 - at for at in range(nodes)}
    with House(tmp_path, history_bytes=MIB) as house:
        house.hears("d", ROWS, lifetime=60)
        for name, rank in chosen.items():
            house.hears(name, ROWS, method=Method("SAPCA, alpha 0.01, beta 0.1", rank))
        house.passes(400.0)
        newest = house.asks("GET", f"/versions/{GROUP}").json["versions"][0]

        few = {"least": 4, "median": 7, "most": 10}
        assert newest["ranks"] == (chosen if nodes == 2 else few)


def model_of(house: House, rows: np.ndarray, **changes: Any) -> Any:
    """Return a model of rows, made from the house's own."""
    from dataclasses import replace

    made = house.server.worker.node
    assert made is not None
    model = made.model(GROUP)
    assert model is not None
    assert model.summary is not None
    summary = Subspace.of(rows, SCHEMA, rank=4)
    return replace(model, summary=summary, counts=Counts(len(rows), 0, 0), **changes)


@pytest.mark.parametrize("degrees", [0.0, 0.001, 30.0, 89.0, 90.0])
def test_the_angle_is_the_one_by_which_a_direction_turned(tmp_path: Path, degrees: float) -> None:
    """Small and large angles alike; a direction has no sign, and schemas that differ no angle."""
    along = np.linspace(-1.0, 1.0, 21)[:, None]
    turned = np.zeros((1, 6))
    turned[0, :2] = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    with House(tmp_path) as house:
        house.hears("c", ROWS)
        house.passes(100.0)
        one = model_of(house, along * np.eye(6)[:1], rank=1)
        other = model_of(house, -along * turned, rank=1)
        elsewhere = model_of(house, along * turned, rank=1, fingerprint="another")

        assert angle_between(one, other) == pytest.approx(degrees, abs=2e-4)
        assert angle_between(one, elsewhere) is None
        assert b'"angle_deg":null' in version_row(other, None).view
