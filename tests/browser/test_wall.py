"""What a person sees without a button: figures in units, and what to act on."""

from __future__ import annotations

from dataclasses import replace

import pytest

from submerge.schema import Channel, Schema
from support.paged_fleet import OPEN, PagedFleet
from support.views import opened

pytestmark = pytest.mark.slow

TALL = {"width": 1280, "height": 4000}
"""A screen on which all of a node is looked at."""

LONG = ("bedroom_climate/temperature", "tasmota_desk/ENERGY.Power", "a", "b", "c", "d")

LINES = """(all) => all.map((each) => [
  each.textContent, new Set([...each.getClientRects()].map(({ top }) => Math.round(top))).size,
])"""
"""Texts, and on how many lines each is."""


def test_the_worst_channel_stands_in_front_with_its_band(fleet, visit):
    """In its unit, beside what the others say; nobody presses anything."""
    page = opened(visit().page(), fleet.origin, "now")
    page.wait_for_selector("#worst canvas")

    said = page.inner_text("#worst h2")
    assert said.startswith(f"inflow of {OPEN} reads 29.23 m³/h, where the others say 18.99 m³/h")
    assert "expected ± 3 sd" in page.inner_text("#worst .legend")
    heights = [page.locator(each).bounding_box()["y"] for each in ("#state", "#worst", "#machines")]
    assert sorted(heights) == heights  # many machines do not push it below the screen


def test_without_an_alarm_the_channel_that_is_farthest_off_stands_there(tmp_path, visit):
    """In words that do not sound like one."""
    with PagedFleet(tmp_path) as fleet:
        fleet.reports(OPEN, *(alarm.over(alarm.began + 60.0) for alarm in fleet.alarms(OPEN)))
        visited = visit(fleet=fleet)
        page = opened(visited.page(), fleet.origin, "now")
        page.wait_for_selector("#worst canvas")

        assert ", farthest from what the others say: " in page.inner_text("#worst h2")
        visited.context.close()


def test_a_machine_that_keeps_its_readings_says_so_once(fleet, visit):
    """The rest of the view stands."""
    visited = visit()
    visited.expects("503 GET /api/values")
    page = visited.page()
    why = {"error": "pump-2 keeps its readings to itself"}
    page.route("**/api/values/**", lambda route: route.fulfill(status=503, json=why))
    opened(page, fleet.origin, "now")

    page.wait_for_selector("#worst:has-text('keeps its readings to itself')")
    assert page.locator(".tile").count() == 6


def test_a_healthy_channel_beside_a_broken_one_has_no_band(fleet, visit):
    """What the others say of it follows the broken one; without an alarm all channels have one."""
    page = opened(visit(viewport=TALL).page(), fleet.origin, "node")
    banded = page.locator("#channels figure:has(.legend li:has-text('expected'))")
    page.locator("#channels figure").nth(5).wait_for()
    assert "inflow 75 %: 29.2 m³/h, where the others say 19 m³/h" in page.inner_text("#alarms")
    assert ["inflow (m³/h)"] == banded.locator("figcaption").all_inner_texts()

    page.goto(f"{fleet.origin}/node?group=room&node=pump-1")
    page.locator("#channels figure").nth(5).wait_for()
    assert 6 == banded.count()


def test_nothing_is_blamed_while_nothing_is_wrong(fleet, visit):
    page = visit(viewport=TALL).page()
    page.goto(f"{fleet.origin}/node?group=room&node=pump-1")

    page.wait_for_selector("#blame:has-text('no channel is to blame')")


def test_names_and_figures_do_not_break_in_the_middle(tmp_path, visit):
    """On a screen that has room for them."""
    with PagedFleet(tmp_path, schema=Schema(tuple(Channel(each, "°C") for each in LONG))) as fleet:
        visited = visit(fleet=fleet, viewport={"width": 1280, "height": 800})
        for view, part in (
            ("now", "#machines, #worst h2"),
            ("alarms", "#open"),
            ("node", "#alarms"),
        ):
            page = opened(visited.page(), fleet.origin, view)
            page.wait_for_selector(".amount")
            lines = page.locator(part).locator("bdi, .amount, td.number").evaluate_all(LINES)
            assert [] == [each for each in lines if each[1] > 1]
        visited.context.close()


def test_health_shows_what_to_act_on_and_folds_the_rest(fleet, visit):
    """A root without a backup needs one: the command stands there."""
    page = opened(visit().page(), fleet.origin, "health")
    assert "1 thing to act on." == page.inner_text("#verdict")
    assert "submerge backup --to backups" in page.inner_text("#health")
    assert not page.locator("th:has-text('Software')").is_visible()

    page.click("#health summary")
    assert page.locator("th:has-text('Software')").is_visible()


def test_one_is_no_plural_and_no_count_is_negative(tmp_path, visit):
    """Alarms by provisional limits may be confirmed, and are not among those that were raised."""
    with PagedFleet(tmp_path, rounds=0) as fleet:
        fleet.house.passes(60.0)
        (_, known) = fleet.alarms("pump-4")
        rejected = replace(known, node="pump-1", verdict="rejected")
        fleet.reports("pump-1", rejected, raised=0, confirmed=1)
        visited = visit(fleet=fleet)
        page = opened(visited.page(), fleet.origin, "fleet")
        page.wait_for_selector("#count:has-text('1 node, 1 client')")
        page.goto(f"{fleet.origin}/alarms?group=room")
        page.wait_for_selector("#watched:has-text('Raised: 0, of which 0 confirmed')")
        visited.context.close()
