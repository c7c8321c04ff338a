"""The view `now`, in a browser: open alarms in words and figures, scores over time, and neither."""

from __future__ import annotations

import time

import pytest

from submerge.protocol.alarm_status import Deviation
from submerge.protocol.score_trail import ScoreTrail, level_of
from support.alarmed import ROWS, alarm, message
from support.nodes import EPOCH
from support.paged import Paged
from support.score_pages import scores_of, serves_scores

pytestmark = pytest.mark.slow

HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture
def paged(tmp_path):
    with Paged(tmp_path) as paged:
        yield paged


@pytest.fixture
def page(chromium):
    page = chromium.new_page(viewport={"width": 375, "height": 740})
    yield page
    page.close()


def test_an_open_alarm_says_who_since_when_and_what(paged, page):
    """Values stand beside what was expected, with the channel's unit where the model has it."""
    off = (Deviation("mote-1", 27.93, 22.0), Deviation("mote-4", 19.2, 20.1))
    message(paged.house, "c", alarm("c", worst=13.2, deviations=off, provisional=True))
    page.clock.set_fixed_time(EPOCH + 1 + 2 * 3600)
    serves_scores(page, scores_of({"c": [60] * 30}, at=time.time()))
    page.goto(f"{paged.origin}/?group=room")
    card = page.locator(".alarm-card")
    card.wait_for()

    assert "1 open alarm" == page.inner_text("#state")
    assert "for 2 h, up to 13.2× its limit" in card.inner_text()  # noqa: RUF001 - as it says
    assert "Channels disagree more than usual (squared prediction error)." in card.inner_text()
    assert ["alarm", "provisional"] == card.locator(".badge").all_inner_texts()
    row = card.locator("tbody tr").first
    assert ["27.93", "22", "+5.93", "75 %"] == row.locator("td").all_inner_texts()
    assert "/node?group=room&node=c" == card.locator("h2 a").get_attribute("href")


def test_the_trail_of_a_report_is_drawn(tmp_path, page):
    """From a node's report, through the history and the tree, to the table of the picture."""
    with Paged(tmp_path, history_bytes=1 << 20) as paged:
        paged.house.time.steady = time.time() - EPOCH
        minute = int(time.time() // 60)
        for node, share in (("calm", 0.25), ("loud", 4.0)):
            trail = ScoreTrail(minute, bytes([level_of(0.5), level_of(share)]))
            paged.house.hears(node, ROWS, trail=trail)
        page.goto(f"{paged.origin}/?hours=1")
        page.click(".heatmap .twin summary")
        page.locator(".twin tbody tr").first.wait_for()

        found = page.locator(".twin tbody tr").all_inner_texts()
        assert ["loud", "4.0× its limit"] == found[0].split("\t")[:2]  # noqa: RUF001
        assert ["calm", "0.25× its limit"] == found[1].split("\t")[:2]  # noqa: RUF001


def test_without_alarms_it_says_what_watches(paged, page):
    """And where no node has sent scores, when to expect them."""
    message(paged.house, "c", state="learning")
    serves_scores(page, scores_of({}, at=time.time()))
    page.goto(f"{paged.origin}/")
    for place, text in (
        ("#watched", "1 node watched; 1 learning."),
        ("#state", "No open alarms"),
        ("#scores", "No scores yet."),
    ):
        page.locator(place).get_by_text(text).wait_for()


def test_a_length_of_time_is_chosen_and_stays(paged, page):
    """It is in the address: a page that is loaded again shows the same."""
    message(paged.house, "c")
    asked = serves_scores(page, scores_of({"c": [60] * 30}, at=time.time()))
    page.goto(f"{paged.origin}/")
    page.wait_for_selector(".heatmap")
    page.click("#hours button:has-text('6 h')")
    page.wait_for_url("**hours=6")
    page.reload()
    page.wait_for_selector(".heatmap")

    assert "hours=6" in asked[-1]
    assert "6 h" == page.inner_text("#hours [aria-pressed=true]")


def test_what_the_tree_does_not_say_is_named(paged, page):
    """Whatever it calls itself; and nothing is wider than a phone."""
    node = "n" * 3000 + HOSTILE
    scores = scores_of({node: [200] * 30}, at=time.time(), silent=[f"{HOSTILE}: silent"])
    serves_scores(page, scores)
    page.goto(f"{paged.origin}/")
    page.wait_for_selector(".heatmap")

    assert f"{HOSTILE}: silent" == page.inner_text("#silent .problem")
    assert 0 == page.locator("main img").count()
    assert 375 == page.evaluate("document.documentElement.scrollWidth")


def test_a_history_that_does_not_answer_is_said(paged, page):
    """The rest of the view stands."""
    message(paged.house, "c")
    page.route(
        "**/data/scores/**",
        lambda route: route.fulfill(status=503, body='{"error": "it is full"}'),
    )
    page.goto(f"{paged.origin}/")
    page.wait_for_selector("#scores .problem")

    assert "No history of scores: it is full." == page.inner_text("#scores .problem")
    page.locator("#state").get_by_text("No open alarms").wait_for()
