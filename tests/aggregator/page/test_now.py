"""The view `now`, in a browser: one sentence, a tile for each machine, scores over time."""

from __future__ import annotations

import json
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
def page(chromium, paged):
    page = chromium.new_page(viewport={"width": 375, "height": 740})
    page.context.add_cookies([paged.browsers_cookie])
    yield page
    page.close()


def test_an_open_alarm_says_who_since_when_and_what(paged, page):
    """The first channel to blame has its value beside what the others say; others have their names.

    What is expected of those follows the one that is wrong, and may be impossible.
    """
    off = (Deviation("mote-1", 27.93, 22.0), Deviation("mote-4", 19.2, -42.0))
    message(paged.house, "c", alarm("c", worst=13.2, deviations=off, provisional=True))
    page.clock.set_fixed_time(EPOCH + 1 + 2 * 3600)
    serves_scores(page, scores_of({"c": [60] * 30}, at=time.time()))
    page.goto(f"{paged.origin}/?group=room")
    tile = page.locator(".tile.alarm")
    tile.wait_for()

    assert "1 provisional alarm: mote-1 of c" == page.inner_text("#state")
    assert (
        "mote-1 27.93 °C, where the others say 22 °C; also mote-4"
        == tile.locator(".reads").inner_text()
    )
    assert "for 2 h, up to 13.2× its limit: channels disagree" in tile.inner_text()  # noqa: RUF001
    assert ["alarm", "provisional"] == tile.locator(".badge").all_inner_texts()
    assert "/node?group=room&node=c" == tile.locator("h2 a").get_attribute("href")
    assert "-42" not in page.inner_text("main")


def test_an_incident_is_one_sentence_and_one_row_with_its_alarms_below(paged, page):
    """On the wall, and in the list of alarms; each machine keeps its own tile."""
    watched = {"watched_s": 7.2e6, "allowed": 12.0}
    for node, number in (("c", 40), ("d", 10), ("e", 50)):
        message(paged.house, node, alarm(node, number), **watched)
    words = "d first, 30 s before c; 2 followed. mote-1 on 3 of 3: a common cause"
    page.goto(f"{paged.origin}/?group=room")
    page.locator("#state").get_by_text(f"1 incident: {words}", exact=True).wait_for()
    assert 3 == page.locator(".tile.alarm").count()

    page.goto(f"{paged.origin}/alarms?group=room")
    rows = page.locator("#open tbody tr")
    rows.first.wait_for()
    assert ["incident-d-a", "↳ d-a", "↳ c-28", "↳ e-32"] == [
        each.splitlines()[0] for each in rows.locator("th").all_inner_texts()
    ]
    assert words in rows.first.inner_text()
    assert "3 alarms" == page.inner_text("#open-count")


def test_a_channel_that_is_silent_says_nothing(paged, page):
    """There is no value that could stand beside another."""
    message(paged.house, "c", alarm("c", worst=0.0, cause="silent", top=(("mote-1", 1.0),)))
    page.goto(f"{paged.origin}/?group=room")
    page.locator(".tile .reads").get_by_text("mote-1 says nothing", exact=True).wait_for()

    assert "its limit" not in page.inner_text(".tile")


def test_a_channel_that_stays_at_one_of_two_states(paged, page):
    """It is on, for so many times its longest run, where it is nothing else; no other says so."""
    stays = {"cause": "duty", "worst": 4.0, "top": (("mote-1", 1.0),)}
    message(paged.house, "c", alarm("c", deviations=(Deviation("mote-1", 85.2, 1.2),), **stays))
    page.goto(f"{paged.origin}/?group=room")
    page.locator(".tile .reads").wait_for()
    assert "mote-1 on at 85.2 °C, else 1.2 °C" == page.inner_text(".tile .reads")

    assert "× its longest run: a channel with two states" in page.inner_text(".tile")  # noqa: RUF001


def test_the_trail_of_a_report_is_drawn(tmp_path_factory, page):
    """From a node's report, through the history and the tree, to the table of the picture."""
    with Paged(tmp_path_factory.mktemp("root"), history_bytes=1 << 20) as paged:
        page.context.add_cookies([paged.browsers_cookie])
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


def row(node: str, state: str = "armed", **more) -> dict:
    """Return a machine, as GET /data/fleet/G has it."""
    known = {
        "under": "", "node": node, "kind": "client", "state": state, "holds": [state], "note": "",
        "judged": state == "armed", "ready_in_s": None, "open": 0,
    }  # fmt: skip
    return known | more


@pytest.mark.parametrize(
    ("rows", "kind", "says"),
    [
        ([], "still", "No machine has reported yet"),
        ([row("a", "unwatched")], "still", "Nothing is judged yet"),
        ([row("a", "learning")], "still", "Learning: nothing is judged yet"),
        (
            [row("a", "learning", ready_in_s=170.0), row("b", "learning", ready_in_s=400.0)],
            "still",
            "Learning: first limits in about 3 min",
        ),
        (
            [row("a", "learning", ready_in_s=0.0)],
            "still",
            "Learning: first limits with the next report",
        ),
        (
            [row("a", "learning", judged=True)],
            "still",
            "No open alarms (by provisional limits)",
        ),
        (
            [row("a"), row("b", "learning")],
            "still",
            "No open alarms at 1 of 2 machines; 1 learning",
        ),
        ([row("a"), row("b", "silent")], "warn", "No open alarms at 1 of 2 machines; 1 silent"),
        ([row("a"), row("b")], "good", "No open alarms at all 2 machines"),
    ],
)
def test_the_sentence_is_good_only_where_all_are_judged(paged, page, rows, kind, says):
    """A machine that learns, or is silent, raises no alarm: that is no good news."""
    fleet = {"group": "room", "at": time.time(), "rows": rows, "silent": [], "more": False}
    fleet["watches"] = []
    page.route("**/data/fleet/**", lambda route: route.fulfill(body=json.dumps(fleet)))
    serves_scores(page, scores_of({}, at=time.time()))
    page.goto(f"{paged.origin}/")
    page.locator("#state").get_by_text(says, exact=True).wait_for()

    assert f"state {kind}" == page.get_attribute("#state", "class")
    assert len(rows) == page.locator(".tile").count()


def test_an_alarm_of_a_machine_that_has_moved_is_where_it_was_heard_last(paged, page):
    """The aggregator that it has left still lists it, as silent."""
    message(paged.house, "c", alarm("c"))
    rows = [row("c", under="new", heard_s=9.0), row("c", "silent", under="old", heard_s=1.0)]
    fleet = {"at": time.time(), "rows": rows, "silent": [], "more": False, "watches": []}
    page.route("**/data/fleet/**", lambda route: route.fulfill(body=json.dumps(fleet)))
    page.goto(f"{paged.origin}/?group=room")
    page.wait_for_selector(".tile:not(.alarm)")

    assert "/node?group=room&path=new&node=c" == page.get_attribute(".tile.alarm h2 a", "href")
    assert "/node?group=room&path=old&node=c" == page.get_attribute(".tile:not(.alarm) a", "href")


def test_without_scores_it_names_no_time_that_nobody_knows(paged, page):
    """Intervals of reports are settings of the nodes."""
    message(paged.house, "c", state="learning")
    serves_scores(page, scores_of({}, at=time.time()))
    page.goto(f"{paged.origin}/")
    page.locator("#scores").get_by_text("No scores yet").wait_for()

    assert "min" not in page.inner_text("#scores").split()
    page.locator("#watched").get_by_text("1 node watched; 1 learning.").wait_for()


@pytest.mark.parametrize(
    ("minutes", "wanted", "columns"), [(10, "1 h", 10), (200, "6 h", 200), (800, "24 h", 800)]
)
def test_the_range_follows_the_age_of_the_scores(paged, page, minutes, wanted, columns):
    """The range is as long as there are scores, until a person chooses another."""
    levels = [0] * (1440 - minutes) + [60] * minutes
    asked = serves_scores(page, scores_of({"c": levels}, at=time.time()))
    page.goto(f"{paged.origin}/")
    page.wait_for_selector(".heatmap")

    assert wanted == page.inner_text("#hours [aria-pressed=true]")
    assert f"hours={wanted.partition(' ')[0]}" in asked[-1]
    page.focus(".heatmap canvas")
    page.keyboard.press("Home")
    page.keyboard.press("Home")
    first = page.inner_text(".heatmap .readout").split()[3]
    begins = time.localtime(int(time.time() // 60 - columns) * 60)
    assert f"{begins.tm_hour:02}:{begins.tm_min:02}" == first


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
    page.locator("#state").get_by_text("No open alarms", exact=True).wait_for()
