"""What is posted to each kind of server, and what Home Assistant gets."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import get_args

import pytest

from submerge import __version__
from submerge.protocol.alarm_changes import AlarmEvent
from submerge.protocol.alarm_status import CAUSES, Cause, Looks
from submerge_client.alarms import event
from submerge_client.alarms.event import event_facts, stamp
from submerge_client.alarms.over_mqtt import configs, state
from submerge_client.alarms.webhook import LEASE_S, REPEATED_S, payload_of
from submerge_client.config.alarms import WebhookConfig
from support.alarms import BEGAN, HISTORY, alarm

START, END = AlarmEvent("start", alarm(0)), AlarmEvent("end", alarm(0, over=True))


def posted(news, *, first=None, now=BEGAN + 60, skew=0.0, **settings):
    """The url and the object that are posted."""
    hook = WebhookConfig(**{"url": "https://hooks.example/x", **settings})
    request = payload_of(hook, "pumps").request(news, first or news.alarm, now=now, skew=skew)
    return request.url, json.loads(request.body)


def test_of_twins_every_message_names_both():
    """Where either may be to blame: in words, and for machines."""
    top = (("flow", 0.5), ("valve", 0.45), ("level", 0.05))
    one = replace(alarm(0), top=top, looks=Looks("sensor", 7, 0.9))
    both = replace(one, looks=Looks("sensor", 7, 0.9, twins=True))
    words = "flow or valve (each is told by the other) alone; the other 6 channels keep"

    assert words in event.sentence(AlarmEvent("start", both))
    assert words in alert(AlarmEvent("start", both))["annotations"]["description"]
    said = state("pump-1", "pumps", (both,))
    assert (["flow", "valve"], True) == (said["twins"], words in said["evidence"])
    assert "twins" not in state("pump-1", "pumps", (one,))
    assert one.packed != both.packed


# -- Alertmanager ----------------------------------------------------------------------------


def alert(news, **settings):
    _, (alert,) = posted(news, shape="alertmanager", **settings)
    return alert


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://am.example", "https://am.example/api/v2/alerts"),
        ("https://am.example:9093/", "https://am.example:9093/api/v2/alerts"),
        ("https://x.example/am", "https://x.example/am/api/v2/alerts"),
        ("https://x.example/api/v2/alerts", "https://x.example/api/v2/alerts"),
    ],
)
def test_alertmanager_is_found_below_any_prefix(url, expected):
    """With or without the path that all of them have."""
    assert expected == posted(START, url=url, shape="alertmanager")[0]


def test_an_alert_has_labels_that_route_and_words_that_explain():
    """Whatever is in a label makes another alert: no figure is."""
    delivered = alert(START)

    assert delivered["labels"] == {
        "alertname": "SubmergeAlarm",
        "node": "pump-1",
        "group": "pumps",
        "channel": "flow",
        "severity": "warning",
    }
    assert delivered["annotations"] == {
        "summary": "pump-1: alarm",
        "description": event.sentence(START),
        "id": alarm(0).name,
        "cause": "spe",
        "worst": "3.21",
        "top": "flow 81%, temp [°C] 12%",
        "model": "7",
    }


def test_an_open_alert_is_open_for_an_hour_from_now():
    """A slow line resolves nothing, and a node that died not for ever."""
    delivered = alert(START, now=BEGAN + 100)

    assert (stamp(BEGAN), stamp(BEGAN + 100 + LEASE_S)) == (
        delivered["startsAt"],
        delivered["endsAt"],
    )


def test_an_alert_ends_when_the_alarm_did():
    """Told late, it is resolved at once."""
    delivered = alert(END, now=BEGAN + 1000)

    assert (stamp(BEGAN), stamp(BEGAN + 60)) == (delivered["startsAt"], delivered["endsAt"])


@pytest.mark.parametrize("skew", [-1e8, -100.0, 100.0, 1e8])
def test_times_are_those_of_the_server(skew):
    """The node's clock lies by years: to Alertmanager what happened now happened now."""
    start, end = alert(START, now=BEGAN, skew=skew), alert(END, now=BEGAN + 60, skew=skew)

    assert (stamp(BEGAN + skew), stamp(BEGAN + skew + LEASE_S)) == (
        start["startsAt"],
        start["endsAt"],
    )
    assert stamp(BEGAN + 60 + skew) == end["endsAt"]


def test_no_alert_begins_or_ends_in_the_future():
    """The clock was set back in the middle of it: an end is an end all the same."""
    delivered = alert(END, now=BEGAN - 1000)

    assert (stamp(BEGAN - 1000), stamp(BEGAN - 1000)) == (
        delivered["startsAt"],
        delivered["endsAt"],
    )


def test_an_alert_is_the_same_whatever_becomes_guilty_later():
    """Its labels are those of its start."""
    later = AlarmEvent("end", alarm(0, over=True, top=(("hum", 0.9), ("flow", 0.1))))

    assert alert(START)["labels"] == alert(later, first=alarm(0))["labels"]
    assert "hum 90%, flow 10%" == alert(later, first=alarm(0))["annotations"]["top"]


def test_alertmanager_wants_to_hear_of_it_again():
    """Its documentation says 30 s to 3 min; the others hear of it once."""
    shapes = [
        payload_of(WebhookConfig(url="https://x/y", shape=shape), "g")
        for shape in ("alertmanager", "ntfy", "json")
    ]

    assert [REPEATED_S, None, None] == [shape.repeats_s for shape in shapes]
    assert 30 <= REPEATED_S <= 180


# -- ntfy --------------------------------------------------------------------------------------


def test_ntfy_hears_it_as_its_json():
    """At its root, with the topic inside: a header does not bear every channel's name."""
    url, delivered = posted(START, url="https://ntfy.example/s3cret", shape="ntfy")

    sequence = delivered.pop("sequence_id")
    assert "https://ntfy.example/" == url
    assert delivered == {
        "topic": "s3cret",
        "title": "pump-1: alarm",
        "message": event.sentence(START),
        "priority": 4,
        "tags": ["warning"],
    }
    assert re.fullmatch("[-_A-Za-z0-9]{1,64}", sequence)


def test_ntfy_tells_a_start_from_an_end_and_knows_a_repetition():
    """Whatever else has become of the alarm meanwhile; an end makes less noise."""
    hook = {"url": "https://ntfy.example/t", "shape": "ntfy"}
    worse = AlarmEvent("start", alarm(0, worst=9.0))
    start, again, end = (posted(each, **hook)[1] for each in (START, worse, END))

    assert start["sequence_id"] == again["sequence_id"] != end["sequence_id"]
    assert start["priority"] > end["priority"]


# -- JSON --------------------------------------------------------------------------------------


def test_whoever_takes_json_gets_what_a_line_says():
    """The url as it stands, with its path and its query."""
    url = "https://hooks.example/a/b?key=1"

    assert (url, event_facts(END, "pumps")) == posted(END, url=url)


@pytest.mark.parametrize(
    ("shape", "key"), [("alertmanager", "generatorURL"), ("ntfy", "click"), ("json", "link")]
)
def test_a_link_leads_to_the_node(shape, key):
    """Each calls it by another name; without one there is none."""
    link = "https://d.example/{group}?node={node}#{id}".replace("#", "&id=")
    _, delivered = posted(START, url="https://x.example/t", shape=shape, link=link)
    _, plain = posted(START, url="https://x.example/t", shape=shape)
    delivered, plain = (each[0] if isinstance(each, list) else each for each in (delivered, plain))

    assert f"https://d.example/pumps?node=pump-1&id={alarm(0).name}" == delivered[key]
    assert key not in plain


def test_a_request_does_not_print_what_is_secret():
    """Neither its path nor what is in it."""
    hook = WebhookConfig(url="https://hooks.example/s3cret?k=s3cret")
    request = payload_of(hook, "s3cret").request(START, alarm(0), now=0.0, skew=0.0)

    assert "s3cret" not in repr(request)


def test_there_are_words_for_every_cause():
    """Whoever adds one has to say what it means."""
    assert {*get_args(Cause)} == {*CAUSES}


# -- Home Assistant ----------------------------------------------------------------------------


def test_the_state_says_how_it_is_and_all_of_the_newest_alarm():
    """Before any, during one, and after it."""
    none, during, after = (state("pump-1", "pumps", each) for each in HISTORY[:3])

    shared = {"node": "pump-1", "group": "pumps"}
    quiet = {"alarm": "OFF", "score": 0.0, "channel": None}
    assert {**shared, **quiet} == none
    facts = {name: value for name, value in event_facts(START, "pumps").items() if name != "event"}
    assert {**facts, "alarm": "ON", "score": 3.21, "channel": "flow"} == during
    over = {"ended": BEGAN + 60, "at": stamp(BEGAN + 60)}
    assert {**facts, **quiet, **over} == after


def test_home_assistant_finds_one_device_with_three_things():
    """A problem, a score and a channel, all of one node."""
    found = configs("homeassistant", "f", "pump-1", "pumps")

    assert {
        "homeassistant/binary_sensor/pump-1/alarm/config": "submerge_f_pump-1_alarm",
        "homeassistant/sensor/pump-1/score/config": "submerge_f_pump-1_score",
        "homeassistant/sensor/pump-1/channel/config": "submerge_f_pump-1_channel",
    } == {topic: config["unique_id"] for topic, config in found.items()}
    for config in found.values():
        assert "submerge/v1/f/alarm/pump-1" == config["state_topic"]
        assert "submerge/v1/f/alarm/pump-1/state" == config["availability_topic"]
        assert config["device"] == {
            "identifiers": ["submerge_f_pump-1"],
            "name": "pump-1",
            "manufacturer": "submerge",
            "model": "pumps",
            "sw_version": __version__,
        }
    problem = found["homeassistant/binary_sensor/pump-1/alarm/config"]
    assert ("problem", "submerge/v1/f/alarm/pump-1") == (
        problem["device_class"],
        problem["json_attributes_topic"],
    )


@pytest.mark.parametrize("n", [0, 1])
def test_what_home_assistant_reads_is_there(n):
    """Each template's field is in the message."""
    delivered = state("pump-1", "pumps", HISTORY[n])

    for config in configs("ha", "f", "pump-1", "pumps").values():
        (field,) = re.findall(r"value_json\.(\w+)", config["value_template"])
        assert field in delivered
