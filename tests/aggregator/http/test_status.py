"""/healthz, /readyz and /metrics: true whatever the store's disk does, and never a change."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families

from submerge.protocol.alarm_status import Alarm, pooled
from submerge.protocol.messages import Counts
from submerge_aggregator.operators.identify import DENIALS, Denial
from submerge_aggregator.refusals import REASONS
from submerge_client.uplink import Parted
from support.alarmed import alarm, alarm_status, message, passes_on
from support.house import House

ROWS = np.random.default_rng(0).normal(size=(60, 6))


@pytest.fixture
def house(tmp_path) -> Iterator[House]:
    with House(tmp_path) as house:
        yield house


def samples(house: House) -> dict[tuple[str, ...], float]:
    """All samples of /metrics, by name and label values."""
    text = house.watches("/metrics").body.decode()
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def breaks(house: House) -> None:
    """Have the disk refuse writes from now on, and the aggregator notice."""
    house.disk.is_full = True
    house.hears("c", ROWS)


def test_health_is_answered_as_long_as_the_process_lives(house):
    """With a disk that is full, too."""
    breaks(house)
    health = house.watches("/healthz")

    assert 200 == health.status
    assert {"uptime_s", "software"} == set(health.json)
    assert health.json["uptime_s"] >= 0


def test_a_root_that_serves_is_ready(house):
    """It has no parent to wait for."""
    ready = house.watches("/readyz")

    assert (200, {"ready": True}) == (ready.status, ready.json)


def test_a_store_that_cannot_be_written_is_not_ready(house):
    """503 and why; and ready again once the disk is."""
    with house.disk.full():
        house.hears("c", ROWS)
        ready = house.watches("/readyz")
        assert (503, "the store cannot be written") == (ready.status, ready.json["why"])

    house.passes(6.0)
    assert 200 == house.watches("/readyz").status


def test_an_aggregator_that_no_parent_has_answered_is_not_ready(tmp_path):
    """It answers children "not now": load balancers should know."""
    with House(tmp_path, parent="headquarters") as house:
        ready = house.watches("/readyz")

        assert 503 == ready.status
        assert "headquarters has not answered" in ready.json["why"]
        assert 200 == house.watches("/metrics").status


def test_one_that_has_ended_is_not_ready(tmp_path):
    """And reports it at once: its machine is not asked any more."""
    with House(tmp_path) as house:
        house.ends()
        ready, metrics = house.watches("/readyz"), samples(house)

        assert (503, "it is starting or stopping") == (ready.status, ready.json["why"])
        assert 0 == metrics["submerge_ready",]
        assert ("submerge_clients", "room") not in metrics


def test_metrics_count_what_came_in(house):
    house.joins("c")
    house.hears("c", ROWS)
    house.hears("c", ROWS, fingerprint="00" * 32)
    house.posts("report", b"\xff\xff")
    found = samples(house)

    assert 1 == found["submerge_joins_total",]
    assert 2 == found["submerge_reports_total",]
    assert 1 == found["submerge_refused_messages_total", "schema"]
    assert 1 == found["submerge_refused_messages_total", "malformed"]
    assert 0 == found["submerge_failed_writes_total",]
    assert found["submerge_commits_total",] >= 2
    assert found["process_resident_memory_bytes",] > 1e6


def test_each_reason_of_refusal_has_a_sample_from_the_start(house):
    """An alarm that waits for one to rise must find it."""
    found = samples(house)

    assert dict.fromkeys(REASONS, 0) == {
        reason: found["submerge_refused_messages_total", reason] for reason in REASONS
    }


def test_each_reason_to_refuse_an_operator_has_a_sample_from_the_start(house):
    """And counts."""
    name = "submerge_operator_requests_denied_total"
    found = samples(house)
    assert dict.fromkeys(DENIALS, 0) == {reason: found[name, reason] for reason in DENIALS}

    house.server.order_log.deny(Denial(401, "wrong_token", "no"), "10.0.0.7", "GET /")
    assert 1 == samples(house)[name, "wrong_token"]


def test_metrics_say_how_a_group_stands(house):
    """Rows, clients, readings, coverage, staleness, the model's version and age."""
    house.hears("c", ROWS, counts=Counts(60, 15, 5))
    house.passes(90.0)
    found = samples(house)

    assert 1 == found["submerge_rows", "room", "client"]
    assert 0 == found["submerge_rows", "room", "aggregator"]
    assert 1 == found["submerge_clients", "room"]
    assert (60, 15, 5) == tuple(
        found["submerge_readings", "room", state] for state in ("learnt", "withheld", "lost")
    )
    assert 0.75 == found["submerge_coverage_ratio", "room"]
    assert 128 == found["submerge_staleness_seconds", "room", "1"]
    assert 0 == found["submerge_model_age_seconds", "room"]
    house.time.steady += 30.0
    assert 30 == samples(house)["submerge_model_age_seconds", "room"]
    assert found["submerge_model_version", "room"] > 1.7e12


def test_a_robust_group_says_who_is_far_from_the_others(tmp_path):
    """To machines as a number, to people as a state; back among them, it is neither."""
    rng = np.random.default_rng(0)
    alike = {
        name: 3 * np.pad(rng.normal(size=(60, 2)), ((0, 0), (0, 4))) + 0.1 * ROWS for name in "abcd"
    }
    with House(tmp_path, robust=True) as house:
        for name, rows in alike.items():
            house.hears(name, rows[:, ::-1] if name == "c" else rows)
        outlier, found = (
            {each["node"]: each["outlier"] for each in house.asks("GET", "/nodes").json},
            samples(house),
        )
        house.hears("c", np.vstack([alike["c"], alike["a"]]))
        after = [each["outlier"] for each in house.asks("GET", "/nodes").json]

    assert 1 == found["submerge_outlier_nodes", "room"]
    assert 180 == found["submerge_readings", "room", "learnt"]
    assert {"a": "", "b": "", "d": ""}.items() <= outlier.items()
    assert outlier["c"].endswith(" deg")
    assert 4 * [""] == after


def test_who_weighs_less_than_it_reports_is_listed(house):
    """To machines as a number, to people as a state with how much and why; all of it counts."""
    rng = np.random.default_rng(0)
    rows = {name: rng.normal(size=(200, 6)) for name in "abcdef"}
    for name, each in rows.items():
        house.hears(name, each[:100])
    house.time.steady += 86400
    for name, each in rows.items():
        house.hears(name, 20 * each if name == "c" else each)
    bounded, found = (
        {each["node"]: each["bounded"] for each in house.asks("GET", "/nodes").json},
        samples(house),
    )

    assert 1 == found["submerge_bounded_nodes", "room"]
    assert 1200 == found["submerge_readings", "room", "learnt"]
    assert {"c"} == {name for name, words in bounded.items() if words}
    assert re.fullmatch(r"counts 0\.00\d+: \d+ times the energy allowed.*", bounded["c"])


def test_metrics_count_who_is_kept_out(house):
    """By reason, each of them at zero before it is needed: an alarm can rise from there."""
    house.hears("c", ROWS)
    house.hears("d", ROWS)
    before = samples(house)
    house.hears("c", ROWS[:9])
    house.asks("POST", "/nodes/room/d/quarantine")
    house.asks("POST", "/nodes/room/d/forget?ban=1")
    found = samples(house)

    name = "submerge_quarantined_nodes"
    assert (0, 0, 0) == tuple(
        before[name, "room", why] for why in ("operator", "shrunk", "equivocated_twice")
    )
    assert (1, 1, 0) == tuple(
        found[name, "room", why] for why in ("operator", "shrunk", "equivocated_twice")
    )
    assert (0, 1) == tuple(each["submerge_banned_nodes", "room"] for each in (before, found))


def test_metrics_say_how_nodes_watch_for_alarms(house):
    """Here and below: states, what was promised, and what came of it."""
    reported = {"watched_s": 3600.0, "allowed": 0.5, "raised": 2, "confirmed": 1}
    message(house, "c", alarm(), **reported)
    passes_on(house, "a", alarm_status(**reported), alarm_status(state="learning"))
    found = samples(house)

    assert [1, 1, 1, 0, 0] == [
        found["submerge_watch_nodes", "room", state]
        for state in ("learning", "armed", "alarm", "paused", "stale")
    ]
    assert [7200, 1, 4, 2, 1] == [
        found[f"submerge_{name}", "room"]
        for name in (
            "watched_seconds",
            "false_alarms_allowed",
            "alarms_raised",
            "alarms_confirmed",
            "alarms_open",
        )
    ]


def test_metrics_tell_who_is_in_alarm_and_by_which_channel(house):
    """Only while it is: the worst score over its limit, of the first channel to blame."""
    stuck = alarm("d", 4, worst=0.0, cause="stuck", top=())
    message(house, "c", alarm(worst=3.5), alarm("c", 0, ended=0.5))
    passes_on(house, "a", alarm_status(stuck))

    def over() -> dict[tuple[str, ...], float]:
        found = samples(house).items()
        return {key[1:]: value for key, value in found if key[0] == "submerge_alarm_over_limit"}

    labels = {("room", "c", "mote-1", "spe"): 3.5, ("room", "d", "", "stuck"): 0.0}
    assert {frozenset(key): each for key, each in labels.items()} == {
        frozenset(key): each for key, each in over().items()
    }
    message(house, "c", alarm(worst=3.5, ended=60.0))
    passes_on(house, "a", alarm_status(alarm("d", 4, ended=60.0)))
    assert {} == over()


def open_below(house: House, aggregator: str, number: int, *alarms: Alarm) -> None:
    """Have an aggregator report open alarms of nodes below it."""
    fence = bytes([number]) * 16
    house.joins(aggregator, fence)
    said = pooled([alarm_status(each) for each in alarms])
    house.hears(aggregator, ROWS, fence=fence, alarm_status=said)


def test_no_child_pushes_an_open_alarm_of_another_out_of_prometheus(house):
    """64 alarms of its own, dated year 9999: what has no place is counted."""
    forged = [alarm(f"x{i}", i, began=253_402_300_799.0) for i in range(1, 65)]
    message(house, "c", alarm())
    open_below(house, "site", 1, alarm("d", 4), alarm("e", 5))
    before = samples(house)
    open_below(house, "rogue", 2, *forged)
    found = samples(house)
    pages = [key for key in found if key[0] == "submerge_alarm_over_limit"]

    assert 64 == len(pages)
    assert {"c", "d", "e"} <= {label for key in pages for label in key[1:]}
    assert (0, 3) == tuple(each["submerge_alarms_hidden", "room"] for each in (before, found))


def test_an_alarm_that_a_child_denies_stays_in_prometheus_and_the_contradiction_counts(house):
    """Of a node that reports here, and of one below another child."""
    message(house, "c", alarm())
    open_below(house, "site", 1, alarm("d", 4))
    before = samples(house)
    passes_on(house, "rogue", alarm_status(alarm(ended=60.0), alarm("d", 4, ended=60.0)))
    found = samples(house)
    pages = {label for key in found if key[0] == "submerge_alarm_over_limit" for label in key[1:]}

    assert {"c", "d"} <= pages
    name = "submerge_alarms_contradicted_total"
    assert (0, 2) == tuple(each[name, "room"] for each in (before, found))
    assert 2 == found["submerge_alarms_open", "room"]


def test_a_fleet_in_alarm_does_not_fill_prometheus(house):
    """64 have a series each; the number of all is shown too."""
    for first in (0, 60):
        nodes = [f"n{i}" for i in range(first, first + 60)]
        house.joins(f"a{first}", bytes([first + 1]) * 16)
        said = pooled([alarm_status(alarm(node, 1 + i)) for i, node in enumerate(nodes)])
        house.hears(f"a{first}", ROWS, fence=bytes([first + 1]) * 16, alarm_status=said)
    found = samples(house)

    assert 120 == found["submerge_alarms_open", "room"]
    assert 120 - 64 == found["submerge_alarms_hidden", "room"]
    assert 64 == sum(key[0] == "submerge_alarm_over_limit" for key in found)


def test_metrics_say_whether_the_parent_is_there(house):
    assert 1 == samples(house)["submerge_parent_reachable",]
    house.server.parent.notice(Parted("no route to host"), None)
    assert 0 == samples(house)["submerge_parent_reachable",]


def test_what_is_not_known_has_no_sample(house):
    """No coverage of no readings: a zero would raise an alarm."""
    found = samples(house)

    assert ("submerge_coverage_ratio", "room") not in found
    assert ("submerge_alarms_open", "room") not in found
    assert ("submerge_staleness_seconds", "room", "1") not in found


def test_metrics_are_there_while_the_disk_fails(house):
    """They matter most then: how often it failed, and that it is not ready."""
    breaks(house)
    found = samples(house)

    assert 1 == found["submerge_failed_writes_total",]
    assert 0 == found["submerge_ready",]
    assert ("submerge_clients", "room") not in found


def test_prometheus_gets_the_form_that_it_asks_for(house):
    old = house.watches("/metrics")
    new = house.watches("/metrics", accept="application/openmetrics-text; version=1.0.0")

    assert old.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert new.headers["content-type"].startswith("application/openmetrics-text")
    assert new.body.endswith(b"# EOF\n")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics"])
def test_nothing_there_takes_anything(house, path, method):
    assert 405 == house.watches(path, method).status


def test_the_operators_door_is_not_there(house):
    """The status address does not serve the admin API."""
    house.hears("c", ROWS)

    assert 404 == house.watches("/nodes").status
    assert 404 == house.watches("/nodes/room/c/forget", "POST").status
    assert 1 == samples(house)["submerge_clients", "room"]
