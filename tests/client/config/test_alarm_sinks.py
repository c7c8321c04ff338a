"""[alarms]: who hears of them; each mistake is one line, and no line shows a secret."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import pytest

from submerge import UsageError
from submerge_client.alarms.factory import links_of, sinks_of
from submerge_client.config.alarms import BrokerConfig, WebhookConfig
from submerge_client.config.client_config import ClientConfig
from submerge_client.config.tomlfile import decoded

MQTT = {"url": "mqtt://broker.example", "insecure": True, "fleet": "f"}
GRPC = {"url": "grpc://parent", "insecure": True}


def client(node="c", uplink=None, sensor=None, **alarms) -> ClientConfig:
    """A client whose alarms go somewhere."""
    return decoded(
        {
            "node": node,
            "group": "g",
            "parent": "root",
            "state": "c.state",
            "uplink": uplink or GRPC,
            "schema": {"channels": ["a", "b"]},
            "summary": {"rank": 1},
            "sensor": sensor or {"kind": "ndjson"},
            "alarms": alarms,
        },
        ClientConfig,
    )


def refused(**settings) -> str:
    """The one line that refuses them."""
    with pytest.raises(UsageError) as error:
        client(**settings)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_left_out_nobody_hears():
    """Reports carry them all the same."""
    config = client()

    assert config.alarms_link is None
    assert {"alarms": None} == links_of(config)


def test_the_uplinks_broker_hears_with_all_that_belongs_to_it():
    """Its url, its fleet, its password."""
    uplink = {**MQTT, "username": "u", "password_file": "p"}
    config = client(uplink=uplink, mqtt=True)

    assert config.uplink == config.alarms_link


def test_another_broker_may_hear():
    """Of the same fleet, unless it says otherwise; then nothing else is the uplink's."""
    home = {"url": "mqtts://home.example", "ca": "ca.pem"}
    link = client(uplink=MQTT, broker=home).alarms_link
    other = client(uplink=MQTT, broker={**home, "fleet": "x"}, mqtt=True).alarms_link

    assert ("home.example", 8883, "f", False) == (link.host, link.port, link.fleet, link.insecure)
    assert Path("ca.pem") == link.ca
    assert "x" == other.fleet


def test_a_broker_with_tls_and_no_files_takes_the_kit():
    """As any other link."""
    assert client(broker={"url": "mqtts://home.example"}).takes_kit
    assert not client(broker={"url": "mqtt://home.example", "insecure": True}).takes_kit


def test_every_link_that_nothing_protects_is_named():
    """A server on this machine is none."""
    hooks = [
        {"url": "http://far.example/x", "insecure": True},
        {"url": "http://127.0.0.1:8080/x"},
        {"url": "https://far.example/x"},
    ]
    links = links_of(client(uplink=MQTT, mqtt=True, webhook=hooks))

    expected = {"alarms": True, "alarms.webhook[0]": True}
    expected |= {"alarms.webhook[1]": False, "alarms.webhook[2]": False}
    assert expected == {name: link.insecure for name, link in links.items()}


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost/x",
        "http://127.0.0.2:1/x",
        "http://[::1]:8080",
        "https://hooks.example/a/b?token=1",
        "https://[2001:db8::1]/x",
    ],
)
def test_a_webhook_is_any_url_that_is_safe(url):
    """With TLS, or on this machine."""
    assert url == WebhookConfig(url=url).url


S3CRET = "put a token into a file that token_file names"


@pytest.mark.parametrize(
    ("hook", "message"),
    [
        ({}, "url: expected text in quotes, got nothing; add url = ..."),
        ({"url": "ftp://x/y"}, "url: expected https://host/path, got something else"),
        ({"url": "hooks.example"}, "url: expected https://host/path, got something else"),
        ({"url": "https://"}, "url: expected https://host/path, got something else"),
        ({"url": "https://x/y#z"}, "url: expected https://host/path, got something else"),
        ({"url": "https://x/a b"}, "url: expected https://host/path, got something else"),
        ({"url": "https://x/\r\ny"}, "url: expected https://host/path, got something else"),
        ({"url": "https://ä.example/"}, "url: expected https://host/path, got something else"),
        (
            {"url": "https://x:70000/s3cret"},
            ("url: expected https://host/path, got something else (Port out of range 0-65535)"),
        ),
        (
            {"url": "https://me:s3cret@x/y"},
            f"url: expected https://host/path, got a url with a user's name; {S3CRET}",
        ),
        (
            {"url": "http://far.example/s3cret"},
            (
                "url: expected https://, got http://far.example; say insecure = true if the"
                " network is trusted, or use https://"
            ),
        ),
        (
            {"url": "http://10.0.0.1/s3cret"},
            (
                "url: expected https://, got http://10.0.0.1; say insecure = true if the"
                " network is trusted, or use https://"
            ),
        ),
        (
            {"url": "https://x/y", "insecure": True},
            (
                "insecure: expected false with https://, got true; leave it out: certificates"
                " are checked all the same"
            ),
        ),
        (
            {"url": "http://localhost/y", "ca": "ca.pem"},
            (
                'ca: expected none with http://, which has no TLS, got "ca.pem"; leave it out,'
                " or use https://"
            ),
        ),
        (
            {"url": "https://ntfy.example/s3cret/more", "shape": "ntfy"},
            (
                "url: expected a topic of ntfy, https://host/topic, got"
                " https://ntfy.example/...; a topic has 1 to 64 of A-Z a-z 0-9 _ -"
            ),
        ),
        (
            {"url": "https://am.example/?x=1", "shape": "alertmanager"},
            ("url: expected the server's, such as https://host:9093, got one with a question mark"),
        ),
        (
            {"url": "https://x", "shape": "alertmanger"},
            (
                'shape: expected "alertmanager", "ntfy" or "json", got "alertmanger";'
                ' did you mean "alertmanager"?'
            ),
        ),
        (
            {"url": "https://x", "link": "https://d/{pump}"},
            (
                "link: expected https://host/path, with {node}, {group} or {id} where these"
                " belong, got something else"
            ),
        ),
        (
            {"url": "https://x", "tokenfile": "t"},
            (
                'tokenfile: expected a setting of [alarms.webhook[1]], got "tokenfile"; did you'
                ' mean "token_file"?'
            ),
        ),
    ],
)
def test_a_mistake_in_a_webhook_is_one_line(hook, message):
    """Where it stands, what was expected, what to do."""
    line = refused(webhook=[{"url": "https://fine.example/"}, hook])

    assert f"alarms.webhook[1].{message}" == line
    assert "s3cret" not in line


def test_alarms_go_to_the_broker_of_the_sensor_where_the_uplink_is_none():
    """A machine on its own has one broker, and names it once; another one wins."""
    sensor = {"kind": "mqtt", "url": "mqtt://hub", "insecure": True, "topics": ["a/+"]}
    sensor |= {"username": "me", "password_file": "secret"}
    alone = client(sensor=sensor, mqtt=True)
    link = alone.alarms_link
    other = {"url": "mqtt://b", "insecure": True}

    assert link is not None
    assert ("mqtt://hub", True, "me", Path("secret")) == (
        *(link.url, link.insecure, link.username, link.password_file),
    )
    assert "mqtt://b" == client(sensor=sensor, broker=other).alarms_link.url
    assert client(sensor=sensor).alarms_link is None


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"mqtt": True},
            (
                "alarms.mqtt: expected [alarms.broker] with the url of a broker, got nothing,"
                " and grpc:// in [uplink]"
            ),
        ),
        (
            {"broker": {"url": "grpcs://x"}},
            (
                "alarms.broker.url: expected mqtt://host:port or mqtts://host:port"
                ' or ws://host:port/path or wss://host:port/path, got "grpcs://x"'
            ),
        ),
        (
            {"webhook": {"url": "https://x"}},
            (
                "alarms.webhook: expected a list of a table, got a table; put its name in [[ ]],"
                " for there may be several"
            ),
        ),
        (
            {"discovery": "home/+"},
            'alarms.discovery: expected a topic such as "homeassistant", or "", got "home/+"',
        ),
        (
            {"discovery": "/home"},
            'alarms.discovery: expected a topic such as "homeassistant", or "", got "/home"',
        ),
        (
            {"node": "hall.pump-1", "uplink": MQTT, "mqtt": True},
            (
                'alarms.discovery: expected "", for Home Assistant finds nothing whose name has'
                ' a dot, got "homeassistant", and the node "hall.pump-1"; say discovery = "",'
                " or give the node another name"
            ),
        ),
        ({"ndjson": ""}, 'alarms.ndjson: expected text in quotes, got ""'),
    ],
)
def test_a_mistake_is_one_line(settings, message):
    """Where it stands, what was expected, what came, what to do."""
    assert message == refused(**settings)


def test_a_dot_in_a_name_matters_to_home_assistant_alone():
    """Nobody else minds."""
    config = client(node="hall.pump-1", uplink=MQTT, mqtt=True, discovery="")

    assert config.alarms_link is not None


def test_a_broker_of_its_own_is_a_link_like_any():
    """All that [uplink] takes, but for what only reports need."""
    fields = {"url", "insecure", "ca", "cert", "key", "username", "password_file", "fleet"}
    fields |= {"password_command", "alpn"}

    assert fields == set(BrokerConfig.__struct_fields__)


# -- what is made of it ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "token_file must be a file to read, got {}: No such file or directory"),
        (b"", "token_file must hold a token and nothing else, got {}"),
        (b"two words\n", "token_file must hold a token and nothing else, got {}"),
        (b"s3cret\xff\n", "token_file must be a file to read, got {}: it is not plain text"),
    ],
)
def test_a_token_that_cannot_be_one_is_refused_at_once(content, message, tmp_path, monkeypatch):
    """Not first when the alarm comes; and it is not shown."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "token"
    if content is not None:
        path.write_bytes(content)
    hook = {"url": "https://x.example/", "token_file": str(path)}
    with pytest.raises(UsageError) as error:
        sinks_of(client(webhook=[hook]), io.BytesIO())

    assert message.format(path) == str(error.value)


def test_authorities_that_cannot_be_read_are_refused_at_once(tmp_path, monkeypatch):
    """As with any link."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ca.pem").write_text("nothing")
    with pytest.raises(UsageError, match=r"expected ca in PEM form, got ca\.pem: "):
        sinks_of(client(webhook=[{"url": "https://x", "ca": "ca.pem"}]), io.BytesIO())


RUN = """
import io, json, sys
from submerge_client.alarms.factory import sinks_of
from submerge_client.config.client_config import ClientConfig
from submerge_client.config.tomlfile import decoded
sinks_of(decoded(json.loads(sys.argv[1]), ClientConfig), io.BytesIO()).close()
print(*sys.modules)
"""

HEAVY = {"urllib.request", "http.client", "email", "ssl", "paho.mqtt.client"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("alarms", "expected"),
    [
        ('{"ndjson": "-"}', set()),
        ('{"webhook": [{"url": "http://localhost:1/x"}]}', HEAVY - {"paho.mqtt.client"}),
    ],
)
def test_only_who_is_told_is_loaded(alarms, expected, tmp_path):
    """HTTP and TLS are 2 to 3 MiB of a small device."""
    config = (
        '{"node": "c", "group": "g", "parent": "r", "state": "c.state", "sensor":'
        ' {"kind": "ndjson"}, "uplink": {"url": "memory://x"}, "summary": {"rank": 1},'
        f' "schema": {{"channels": ["a", "b"]}}, "alarms": {alarms}}}'
    )
    done = subprocess.run(
        [sys.executable, "-c", RUN, config],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )

    assert expected == HEAVY & set(done.stdout.split())
