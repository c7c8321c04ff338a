"""Apprise as a sink: which URLs it takes, how long it waits, and what it reports of failures."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading

import apprise
import pytest

from submerge import UsageError
from submerge.protocol.alarm_changes import AlarmEvent
from submerge_aggregator.notify import over_apprise
from submerge_aggregator.notify.over_apprise import (
    AppriseMessage,
    AppriseMessages,
    AppriseService,
    is_on_network,
    open_service,
)
from submerge_aggregator.notify.urls import SecretUrl
from submerge_client.alarms.webhook import HttpAnswer
from support.alarms import alarm
from support.programs import until

LOCAL = {
    *("blink1", "dbus", "gio", "glib", "gnome", "kde", "macosx", "qt", "syslog", "windows"),
}
"""Schemes of Apprise that stay on the machine."""

MESSAGE = AppriseMessage("pump-1-a/start", "title", "body", "warning")


def opened(text: str, **settings):
    return open_service(SecretUrl(text, 1), **settings)


def refused(text: str) -> str:
    """Return the one line that refuses a URL."""
    with pytest.raises(UsageError) as error:
        opened(text)
    assert error.value.__cause__ is None
    assert 1 == len(str(error.value).splitlines())
    assert "s3cret" not in str(error.value)
    return str(error.value)


# Which URLs


@pytest.mark.parametrize(
    "text",
    [
        "jsons://hooks.example/s3cret",
        "json://127.0.0.1:8080/s3cret",
        "json://localhost/s3cret",
        "mailtos://me:s3cret@mail.example",
        "mailto://me:s3cret@gmail.com",  # Apprise knows that it wants STARTTLS
        "mqtts://broker.example/topic",
        "tgram://123456789:abcdefg_hijklmnop/12315544",
        "https://discord.com/api/webhooks/4174216298/JHMHI8qBe7bk2ZwO5U711o3dV_js",
    ],
)
def test_services_on_the_network_are_taken(text):
    """With certificates verified, no redirects, and no tries of Apprise's own."""
    service = opened(text)

    assert (True, False, 0) == (service.verify_certificate, service.redirects, service.retry)
    assert service.store.path is None


def test_what_runs_on_this_machine_is_refused():
    """All of it that the installed Apprise has, and nothing else."""
    manager = apprise.NotificationManager()
    known = {scheme: manager[scheme] for plugin in manager.plugins() for scheme in _schemes(plugin)}
    refuses = {scheme for scheme, plugin in known.items() if not is_on_network(plugin)}

    assert len(known) > 100
    assert LOCAL & known.keys() == refuses


def _schemes(plugin) -> set[str]:
    names = (plugin.protocol, plugin.secure_protocol)
    return {each for name in names for each in ([name] if isinstance(name, str) else name or ())}


@pytest.mark.parametrize("text", ["syslog://s3cret", "dbus://", "macosx://s3cret", "windows://x"])
def test_a_refusal_says_why(text):
    """Also of a scheme that Apprise itself would not offer here."""
    said = refused(text if text != "dbus://" else "dbus://s3cret")

    assert "expected a service on the network, got " in said


def test_code_of_others_is_refused():
    """Apprise lets a file define a service of its own."""
    manager = apprise.NotificationManager()
    apprise.decorators.notify(on="s3lfmade")(lambda *_args, **_more: True)
    try:
        assert "expected a service on the network" in refused("s3lfmade://s3cret")
    finally:
        manager.remove("s3lfmade")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nosuch://s3cret", "expected a URL that Apprise knows, got nosuch, line 1"),
        ("slack://s3cret", "expected a URL that Apprise takes, got slack, line 1"),
        ("jsons://h.example/s3cret?verify=no", "take verify=no out"),
        ("json://h.example/s3cret", "expected a service with TLS, got json, line 1; use jsons://"),
        ("mailto://me:s3cret@mail.example", "use mailtos://"),
        ("mailtos://me:s3cret@mail.example?mode=insecure", "expected a service with TLS"),
        ("rsyslog://h.example/local5", "it has none: take [[alarms.webhook]]"),
    ],
)
def test_a_url_that_cannot_be_is_one_line(text, said):
    """With its scheme and its line, and without itself."""
    assert said in refused(text)


def test_a_service_without_tls_may_be_on_this_machine():
    assert opened("json://localhost/x").host == "localhost"


def test_without_the_package_it_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "apprise", None)

    assert refused("json://localhost/").endswith("pip install 'submerge[notify]'")


@pytest.mark.slow
def test_an_aggregator_that_does_not_name_it_does_not_load_it():
    """Nor the HTTP library that comes with it; the modules that use it may be there."""
    run = (
        "import sys, submerge_aggregator.assembly, submerge_aggregator.notify.over_apprise\n"
        "print(*{name.partition('.')[0] for name in sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", run], capture_output=True, text=True, check=True)

    assert "submerge_aggregator" in done.stdout.split()
    assert not {"apprise", "requests", "urllib3", "markdown"} & set(done.stdout.split())


# What is sent


def test_a_start_warns_and_an_end_gives_the_all_clear():
    """The key is the same however the alarm has grown."""
    shape = AppriseMessages()
    start, grown, end = (
        shape.request(AlarmEvent(event, each), alarm(), now=0.0, skew=0.0)
        for each, event in (
            (alarm(), "start"),
            (alarm(worst=9.0), "start"),
            (alarm(over=True), "end"),
        )
    )

    assert ("pump-1: alarm", "warning") == (start.title, start.kind)
    assert "temp [°C] 12%" in start.body
    assert (start.key, True) == (grown.key, start.body != grown.body)
    assert ("pump-1: the alarm is over", "success") == (end.title, end.kind)
    assert start.key != end.key


class Fake:
    """A service of Apprise that does what it is given, one thing for each message."""

    def __init__(self, *does):
        self.does, self.came = list(does), []

    def notify(self, **message):
        self.came.append(message)
        each = self.does.pop(0)
        return each() if callable(each) else each


def fails(error: BaseException):
    def act():
        raise error

    return act


def logs_of(line: str):
    def act():
        logging.getLogger("apprise").warning(line)
        return False

    return act


def test_what_a_service_says_becomes_an_answer():
    """The code that it answers, or the type of what went wrong; never its words."""
    over_apprise._close_logs()
    service = AppriseService(
        Fake(
            True,
            False,
            logs_of("Failed to send s3cret: Not Found, error=404."),
            logs_of("A Connection error occurred sending to s3cret"),
            fails(ValueError("s3cret")),
        )
    )
    whys = [service(MESSAGE).why for _ in range(5)]

    plain = "it does not take the message"
    assert ["", plain, "it answers 404", plain, "Apprise fails with ValueError"] == whys


def test_the_message_is_text():
    """So Apprise escapes it for services that want HTML."""
    fake = Fake(True)
    AppriseService(fake)(MESSAGE)

    expected = {"title": "title", "body": "body", "notify_type": "warning", "body_format": "text"}
    assert [expected] == fake.came


def test_a_service_that_hangs_is_not_asked_twice():
    """It costs one thread; what it takes in the end was sent once."""
    go = threading.Event()
    fake = Fake(lambda: go.wait(20.0), True)
    service = AppriseService(fake, limit_s=0.01)
    before = threading.active_count()
    waits = [service(MESSAGE).why for _ in range(3)]
    during = threading.active_count()
    go.set()
    until(lambda: service(MESSAGE) == HttpAnswer())

    assert ["it has not answered in 0.01 s"] * 3 == waits
    assert (before + 1, 1) == (during, len(fake.came))


def test_a_message_waits_for_the_one_before_it():
    """And is then sent itself: what came of the other is no answer to this."""
    go = threading.Event()
    fake = Fake(lambda: go.wait(20.0), False)
    service = AppriseService(fake, limit_s=0.01)
    service(MESSAGE)
    other = MESSAGE._replace(key="pump-1-a/end")
    waits = service(other).why
    go.set()
    until(lambda: len(fake.came) == 2 or service(other).why == "it does not take the message")

    assert "it has not answered in 0.01 s" == waits
    assert 2 == len(fake.came)
