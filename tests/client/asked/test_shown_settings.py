"""What other machines see of a configuration: everything but its secrets, by type."""

from __future__ import annotations

import json
import string
from typing import Annotated, Any, Literal, get_args, get_origin

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import fields

from submerge.protocol.messages import MOST_BODY
from submerge_aggregator.config import AggregatorConfig
from submerge_client.config.client_config import ClientConfig, load
from submerge_client.config.sections import (
    AnyText,
    Name,
    Secret,
    Section,
    Text,
    choices,
    is_section,
)
from submerge_client.config.tomlfile import decoded
from submerge_client.replies import HIDDEN, settings_reply, shown_settings
from submerge_operate.up.config import BoxConfig

CLIENT = {
    "node": "pump",
    "group": "pumps",
    "parent": "root",
    "state": "pump.state",
    "kit": "/etc/pump.kit",
    "uplink": {"url": "mqtts://broker:8883", "username": "u", "password_file": "/etc/password"},
    "schema": {"channels": ["flow [l/min]", {"name": "hot", "unit": "C"}]},
    "sensor": {"kind": "ndjson"},
}

# Begun so that none is a name of a setting: hypothesis also draws words of the source.
secrets = st.text(string.ascii_letters + string.digits + "_-", min_size=16, max_size=40).map(
    lambda word: f"Zq{word}"
)


def said(config: Section) -> dict[str, Any]:
    reply = json.loads(settings_reply("pump", "client", config))
    assert len(json.dumps(reply)) < 2 * MOST_BODY
    return reply


@given(url=secrets, token=secrets, link=secrets, words=st.lists(secrets, min_size=1, max_size=3))
def test_no_secret_of_a_configuration_is_in_a_reply(url, token, link, words):
    """A topic of ntfy, a token in a url or in a link, and arguments of a program."""
    hooks = [
        {"url": f"https://host/{url}?token={token}", "link": f"https://host/?token={link}"},
        {"url": f"https://ntfy.sh/{url}", "shape": "ntfy"},
    ]
    sensor = {"kind": "program", "command": ["/bin/read", *words]}
    client = decoded(CLIENT | {"sensor": sensor, "alarms": {"webhook": hooks}}, ClientConfig)
    root = decoded(
        {
            "node": "root",
            "store": "root.db",
            "listen": {"grpc": {"insecure": True}},
            "groups": {"pumps": {"schema": {"channels": ["a"]}}},
            "alarms": {"webhook": hooks},
        },
        AggregatorConfig,
    )
    box = decoded(
        {
            "node": "n",
            "sensor": sensor,
            "schema": {"channels": ["a"]},
            "alarms": {"webhook": hooks},
        },
        BoxConfig,
    )
    replies = (
        settings_reply("pump", "client", client),
        settings_reply("root", "aggregator", root),
        settings_reply("n", "client", box.client),
        settings_reply("n-root", "aggregator", box.aggregator),
    )
    for secret in (url, token, link, *words):
        assert not [reply for reply in replies if secret.encode() in reply]


def test_all_else_is_shown_as_it_stands_in_the_file(tmp_path):
    """With defaults, and with what the environment replaces; files of keys by their paths."""
    path = tmp_path / "pump.toml"
    path.write_text(
        'node = "pump"\ngroup = "pumps"\nparent = "root"\nstate = "s"\nkit = "/etc/pump.kit"\n'
        '[uplink]\nurl = "grpcs://root:8470"\n[schema]\nchannels = ["flow [l/min]"]\n'
        '[sensor]\nkind = "program"\ncommand = ["read"]\n'
    )
    environ = {"SUBMERGE__LOG": "debug", "SUBMERGE__UPLINK__URL": "grpcs://other:8470"}
    reply = said(load(path, environ))

    assert ("pump", "client", False) == (reply["node"], reply["kind"], reply["cut"])
    shown = reply["settings"]
    assert ("debug", "grpcs://other:8470", "/etc/pump.kit") == (
        *(shown["log"], shown["uplink"]["url"]),
        shown["kit"],
    )
    assert {"kind": "program", "command": [HIDDEN]} == shown["sensor"]
    assert (["flow [l/min]"], 300.0, None) == (
        *(shown["schema"]["channels"], shown["timing"]["report_every_s"]),
        shown["watch"]["silence_s"],
    )


class Inner(Section, frozen=True, kw_only=True, tag_field="kind", tag="inner"):
    """A section of a kind, with words."""

    words: tuple[Secret, ...] = ("hush-1",)


class Invented(Section, frozen=True, kw_only=True):
    """Every form that a setting may have.

    bare, hushed, listed, table, keys, either, unknown : hidden
    shown, empty, word, number : shown
    """

    bare: str = "hush-2"
    hushed: Secret | None = "hush-3"
    listed: tuple[str | Inner, ...] = ("hush-4", Inner())
    table: dict[Name, Secret] = msgspec.field(default_factory=lambda: {"a": "hush-5"})
    keys: dict[Secret, int] = msgspec.field(default_factory=lambda: {"hush-6": 1, "hush-7": 2})
    either: Literal["on"] | Secret = "hush-8"
    unknown: Annotated[str, "a note"] = "hush-9"
    shown: Text = "a"
    empty: AnyText = ""
    word: Literal["on", "off"] = "on"
    number: int | None = 3


def test_text_is_hidden_unless_its_type_says_otherwise():
    """In lists, tables and their keys, too: a new setting cannot be forgotten."""
    shown = shown_settings(Invented())

    assert "hush-" not in json.dumps(shown)
    assert ("a", "", "on", 3, HIDDEN, HIDDEN) == tuple(
        shown[each] for each in ("shown", "empty", "word", "number", "bare", "hushed")
    )
    assert [HIDDEN, {"kind": "inner", "words": [HIDDEN]}] == shown["listed"]
    assert (2, ["a"]) == (len(shown["keys"]), [*shown["table"]])


def texts(kind: Any, place: str = "") -> dict[str, set[Any]]:
    """Every text that a section may hold, by its place: the types that it may have there."""
    found: dict[str, set[Any]] = {}
    for field in fields(kind):
        for inner in _inside(field.type):
            if is_section(inner):
                found |= texts(inner, f"{place}{field.name}.")
            elif inner is str or (get_origin(inner) is Annotated and get_args(inner)[0] is str):
                found.setdefault(place + field.name, set()).add(inner)
    return found


def _inside(kind: Any) -> list[Any]:
    return [
        inner
        for choice in choices(kind)
        for inner in (
            [each for arg in get_args(choice) if arg is not ... for each in _inside(arg)]
            if get_origin(choice) in (tuple, dict)
            else [choice]
        )
    ]


SECRET_WORDS = ("token", "password", "secret", "key", "credential", "url", "command", "link")


@pytest.mark.parametrize("kind", [ClientConfig, AggregatorConfig, BoxConfig])
def test_every_text_of_a_configuration_is_known_as_shown_or_as_secret(kind):
    """A plain `str` says neither; and what is called like a secret is one.

    Urls of links are shown: those with a user's name or a password are refused.
    """
    found = texts(kind)
    assert not [place for place, kinds in found.items() if str in kinds]
    called = {
        place: kinds
        for place, kinds in found.items()
        if any(word in place.rpartition(".")[2] for word in SECRET_WORDS)
    }
    hidden = {place for place, kinds in called.items() if kinds == {Secret}}
    links = {f"{each}url" for each in ("", "uplink.", "parent.", "listen.mqtt.", "sensor.")}
    links |= {"alarms.broker.url", "scores.broker.url"}
    assert called.keys() - hidden <= links
    assert {"alarms.webhook.url", "alarms.webhook.link"} & found.keys() <= hidden


@pytest.mark.parametrize(("channels", "letters"), [(20_000, 6), (300, 2000), (1, 200_000)])
def test_a_long_configuration_is_cut_and_says_so(channels, letters):
    """It fits into a reply; every section is still there."""
    names = [f"{i:06d}{'x' * (letters - 6)}" for i in range(channels)]
    config = decoded(
        CLIENT
        | {
            "schema": {"channels": ["a"]},
            "sensor": {"kind": "mqtt", "url": "mqtts://b", "topics": names},
        },
        ClientConfig,
    )
    body = settings_reply("pump", "client", config)
    reply = json.loads(body)

    assert len(body) <= MOST_BODY
    assert reply["cut"]
    assert {field.name for field in fields(ClientConfig)} == reply["settings"].keys()
