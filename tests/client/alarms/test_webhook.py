"""Webhooks: each event once it is taken, in order, for as long as that takes."""

from __future__ import annotations

import json
import os
import threading

import numpy as np
import pytest

from submerge_client.alarms.event import stamp
from submerge_client.alarms.journal import Journal
from submerge_client.alarms.webhook import (
    CAP_S,
    LEASE_S,
    REPEATED_S,
    HttpAnswer,
    Webhook,
    WebhookDelivery,
    payload_of,
)
from submerge_client.config.alarms import WebhookConfig
from support.alarms import BEGAN, HISTORY, RISKY, Killed, Killer, Log, alarm
from support.patience import PATIENCE_S

NAMES = [alarm(0).name, alarm(1).name]
EXPECTED = [(name, event) for name in NAMES for event in ("start", "end")]


class Server:
    """What takes posts, and a clock; it gives the prepared answers, and then success."""

    def __init__(self, folder, shape="json", *, skew=None):
        self.now = BEGAN
        self.taken, self.tries, self.answers = [], 0, []
        self.journal = folder / "c.state.alarms"
        self._skew = skew
        self._hook = WebhookConfig(url="https://hooks.example/s3cret", shape=shape)
        self.begin()

    def begin(self):
        """A process begins."""
        self.delivery = WebhookDelivery(
            payload_of(self._hook, "pumps"),
            self.post,
            Journal(self.journal, ("hook",)),
            name="hook",
            where="https://hooks.example",
            clock=lambda: self.now,
            wall=lambda: self.now,
            rng=np.random.default_rng(0),
        )

    def post(self, request):
        """Take one, or do not."""
        self.tries += 1
        answer = self.answers.pop(0) if self.answers else HttpAnswer()
        if not answer.why:
            self.taken.append(json.loads(request.body))
        at = None if self._skew is None else self.now + self._skew
        return answer._replace(at=at)

    def hear(self, alarms, *, for_s=0.0):
        """Let the delivery work for a while; return how long it wants to wait."""
        until = self.now + for_s
        self.delivery.begin(alarms)
        while True:
            wait = self.delivery.post_due(alarms)
            if self.now + wait > until:
                self.now = until
                return wait
            self.now += wait

    def events(self):
        """The events that were taken, from plain JSON."""
        return [(each["id"], each["event"]) for each in self.taken]


@pytest.fixture
def server(tmp_path):
    return Server(tmp_path)


def test_each_start_and_each_end_is_told_once(server):
    """However often it is heard."""
    for state in HISTORY:
        server.hear(state)
        server.hear(state)
        server.begin()
        server.hear(state)

    assert EXPECTED == server.events()


def test_what_is_refused_is_told_later_and_in_order(server):
    """An end never overtakes its start."""
    server.hear(())
    server.answers = [HttpAnswer("it answers 500")] * 3
    server.hear(HISTORY[2])
    server.hear(HISTORY[2], for_s=60.0)

    assert (5, EXPECTED[:2]) == (server.tries, server.events())


def test_what_cannot_be_told_is_tried_ever_more_seldom(server):
    """At least every five minutes, and without end."""
    server.hear(())
    server.answers = [HttpAnswer("nothing listens")] * 1000
    server.hear(HISTORY[1], for_s=86400.0)

    assert 86400 / CAP_S <= server.tries <= 4 * 86400 / CAP_S


def test_it_is_said_once_why_nothing_is_told(server):
    """And again when another reason comes, and when it works; nothing secret is."""
    log = Log()
    server.hear(())
    server.answers = [HttpAnswer("a")] * 5 + [HttpAnswer("b")] * 5
    server.hear(HISTORY[1], for_s=3600.0)

    trying = "alarms do not reach the webhook, trying on"
    assert [trying, trying, "alarms reach the webhook again"] == log.said()
    assert ["a", "b", None] == [line.get("why") for line in log.lines]
    assert "s3cret" not in str(log.lines)


def test_a_server_that_asks_for_a_pause_gets_it(server):
    """As in Retry-After."""
    server.hear(())
    server.answers = [HttpAnswer("it answers 429", pause_s=500.0)]

    assert 500 == server.hear(HISTORY[1])
    server.hear(HISTORY[1], for_s=500.0)
    assert EXPECTED[:1] == server.events()


def test_many_alarms_while_it_was_away_are_all_told(server):
    """As many as the node remembers, oldest first."""
    server.hear(())
    server.hear(tuple(alarm(n, over=True) for n in reversed(range(8))))

    names = [alarm(n).name for n in range(8)]
    assert [(name, event) for name in names for event in ("start", "end")] == server.events()


def test_a_new_webhook_does_not_ring_for_what_is_over(server):
    """Later alarms are delivered."""
    server.hear(HISTORY[3])
    server.hear(HISTORY[4])

    assert EXPECTED[2:] == server.events()


def _lived(folder, killer, monkeypatch):
    """Two alarms, and a process that may be killed once, between a post and its note, too."""
    server = Server(folder)
    with monkeypatch.context() as patched:
        for name in RISKY:
            patched.setattr(os, name, killer.guarded(getattr(os, name)))
        server.post = killer.guarded(server.post)
        server.begin()
        for state in HISTORY:
            while True:
                try:
                    server.hear(state)
                    break
                except Killed:
                    server.begin()
    return server


@pytest.mark.slow
@pytest.mark.parametrize("when", ["before", "after", "within"])
def test_killed_at_any_moment_it_tells_each_at_least_once(tmp_path_factory, monkeypatch, when):
    """In order; twice is only what was taken and not yet noted."""
    counted = Killer()
    _lived(tmp_path_factory.mktemp("counted"), counted, monkeypatch)
    times = []
    for i in range(counted.done):
        folder = tmp_path_factory.mktemp(f"{when}-{i}")
        events = _lived(folder, Killer(i, when), monkeypatch).events()
        assert EXPECTED == list(dict.fromkeys(events)), i
        assert events == sorted(events, key=EXPECTED.index), i
        times.append(len(events) - len(EXPECTED))

    assert counted.done > 20
    assert {0, 1} == set(times)


# -- Alertmanager ------------------------------------------------------------------------------


def test_an_open_alert_is_repeated_until_it_is_over(tmp_path):
    """Every three minutes, each time for another hour; then it is resolved, once."""
    server = Server(tmp_path, "alertmanager")
    server.hear(())
    server.hear(HISTORY[1], for_s=10 * REPEATED_S + 1)
    opened = len(server.taken)
    server.hear(HISTORY[2], for_s=10 * REPEATED_S)
    ends = [alert["endsAt"] for (alert,) in server.taken]

    assert (11, 12) == (opened, len(server.taken))
    assert [stamp(BEGAN + i * REPEATED_S + LEASE_S) for i in range(11)] == ends[:-1]
    assert stamp(BEGAN + 60) == ends[-1]
    assert 1 == len({json.dumps(alert["labels"]) for (alert,) in server.taken})


def test_an_alert_that_was_open_before_a_restart_is_repeated_at_once(tmp_path):
    """Nobody knows for how long nothing was said; its labels are those of its start."""
    server = Server(tmp_path, "alertmanager")
    server.hear(())
    server.hear(HISTORY[1])
    server.begin()
    server.hear((alarm(0, top=(("hum", 1.0),)),))
    (first,), (again,) = server.taken

    assert first["labels"] == again["labels"]
    assert "hum 100%" == again["annotations"]["top"]


def test_a_repetition_that_fails_is_tried_again(tmp_path):
    """Without a word for an hour Alertmanager would resolve it."""
    server = Server(tmp_path, "alertmanager")
    server.hear(())
    server.hear(HISTORY[1])
    server.answers = [HttpAnswer("nothing listens")] * 3
    server.hear(HISTORY[1], for_s=2 * REPEATED_S)

    assert 2 <= len(server.taken)
    assert len(server.taken) + 3 == server.tries


@pytest.mark.parametrize("skew", [-1e8, 1e8])
def test_a_clock_that_lies_is_noticed_and_told_again_in_the_servers_time(tmp_path, skew):
    """Else what began now would be over since years, or begin in years."""
    server = Server(tmp_path, "alertmanager", skew=skew)
    server.hear(())
    server.hear(HISTORY[1])
    server.now += 60
    server.hear(HISTORY[2])
    starts, ends = ([alert[key] for (alert,) in server.taken] for key in ("startsAt", "endsAt"))

    assert [stamp(BEGAN), stamp(BEGAN + skew), stamp(BEGAN + skew)] == starts
    assert [stamp(BEGAN + skew + LEASE_S), stamp(BEGAN + skew + 60)] == ends[1:]


def test_a_server_whose_clock_jumps_is_told_no_more_than_twice(tmp_path):
    """Its clock is its own business."""
    server = Server(tmp_path, "alertmanager", skew=0.0)
    server.hear(())
    post = server.post

    def jumping(request):
        server._skew += 1000.0
        return post(request)

    server.post = jumping
    server.begin()
    server.hear(HISTORY[1])

    assert 2 == server.tries


# -- the thread --------------------------------------------------------------------------------


def test_the_thread_tells_what_it_hears_and_ends(tmp_path):
    """Also states that come while it waits; `close` waits for what can still be delivered."""
    server = Server(tmp_path)
    hook = Webhook(server.delivery, "hook")
    for state in HISTORY:
        hook.update(state)
    hook.close(10.0)

    assert EXPECTED == server.events()


def test_closing_does_not_wait_for_a_server_that_is_away(tmp_path):
    """The next start delivers it."""
    server = Server(tmp_path)
    tried = threading.Event()

    def away(_):
        tried.set()
        return HttpAnswer("nothing listens")

    server.post = away
    server.begin()
    hook = Webhook(server.delivery, "hook")
    hook.update(())
    hook.update(HISTORY[1])

    assert tried.wait(PATIENCE_S)
    hook.close(600.0)  # would take ten minutes
    assert [] == server.events()


def test_what_fails_in_the_thread_is_said():
    """No thread dies in silence."""
    log = Log()
    failed = threading.Event()

    class Broken:
        def begin(self, alarms):
            pass

        def post_due(self, alarms):
            failed.set()
            raise ZeroDivisionError("a bug")

    hook = Webhook(Broken(), "hook")
    hook.update(())
    assert failed.wait(PATIENCE_S)
    hook.close(10.0)

    assert ["ZeroDivisionError: a bug"] == [line["why"] for line in log.lines]
