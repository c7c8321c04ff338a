"""Mistakes in a machine's configuration: one line each, with the cure, and nothing is made."""

from __future__ import annotations

import pytest

from support.commands import shell

NODE, FLOW = 'node = "desk"\nfolder = "kept"\n', '[schema]\nchannels = ["flow", "heat"]\n'
LOADS = '[schema]\nchannels = ["load.1", "mem.percent"]\n'
LINES, HOST = '[sensor]\nkind = "ndjson"\n', '[sensor]\nkind = "host"\n'
BROKER = '[sensor]\nkind = "mqtt"\nurl = "mqtt://b"\ninsecure = true\ntopics = ["z/+"]\n'


def broker(old: str = "", new: str = "", more: str = "") -> str:
    return NODE + BROKER.replace(old, new) + more + FLOW


def more(text: str) -> str:
    return NODE + LINES + FLOW + text


MISTAKES = {
    "a key misspelt": (NODE + LINES + '[schema]\nchanels = ["a"]\n', 'did you mean "channels"?'),
    "a section misspelt": (more('[sensors]\nkind = "host"\n'), 'did you mean "sensor"?'),
    "a name with a space": (more("").replace("desk", "my pi"), "1 to 64 of A-Z"),
    "a channel twice": (NODE + LINES + '[schema]\nchannels = ["a", "a"]\n', "rename one"),
    "no channel": (NODE + LINES + "[schema]\nchannels = []\n", "expected at least one"),
    "a channel that is a number": (more("").replace('"heat"', "7"), "put it in quotes"),
    "another scheme": (broker("mqtt://", "http://"), "expected mqtt://host:port"),
    "no TLS": (broker("insecure = true\n"), "say insecure = true if the network is trusted"),
    "a port in letters": (broker("//b", "//b:port"), "expected mqtt://host:port"),
    "# in the middle": (broker("z/+", "z/#/x"), "expected # as the last level"),
    "a place misspelt": (broker("z/+", "z/{devise}"), "{device} and {field}"),
    "no topics": (broker('["z/+"]', "[]"), 'add topics = ["zigbee2mqtt/+"], say'),
    "a number in quotes": (broker(more='period_s = "10"\n'), "leave the quotes out"),
    "a period of nothing": (broker(more="period_s = 0\n"), "expected a time in seconds, above 0"),
    "a decimal comma": (broker(more="period_s = 0,5\n"), "write a decimal point"),
    "yes for true": (broker("= true", "= yes"), "write true or false"),
    "no password there": (
        broker(more='username = "me"\npassword_file = "none"\n'),
        "correct its path, or its owner",
    ),
    "a password without a user": (
        broker(more='password_file = "none"\n'),
        "sensor.username: expected",
    ),
    "a pattern that is no list": (broker(more='exclude = "battery"\n'), "put it in [ ]"),
    "a channel that no host has": (NODE + HOST + FLOW.replace("flow", "cpu_temp"), "it has cpu"),
    "a command in one text": (
        NODE + '[sensor]\nkind = "program"\ncommand = "meter --fast"\n' + FLOW,
        "put it in [ ]",
    ),
    "no such program": (
        NODE + '[sensor]\nkind = "program"\ncommand = ["no-such-meter"]\n' + FLOW,
        "no-such-meter",
    ),
    "a quote that is missing": (more("").replace('desk"', "desk"), "a quote is missing"),
    "a backslash": (more("").replace("kept", "C:\\temp\\kept"), "in single quotes"),
    "a section twice": (more(LINES), "put its settings together"),
    "alarms that never come": (more('[alarms]\nat_most = "never"\n'), "NUMBER false per hour"),
    "a webhook without TLS": (
        more('[[alarms.webhook]]\nurl = "http://example.org/x"\n'),
        "or use https://",
    ),
    "no port to listen on": (
        more('[listen.grpc]\naddress = "0.0.0.0"\ninsecure = true\n'),
        "as in 0.0.0.0:8470",
    ),
    "a kit that is none": (
        f'kit = "box.toml"\n{NODE}{HOST}{LOADS}[listen.grpc]\naddress = "127.0.0.1:0"\n',
        "expected a certificate and its key in PEM form",
    ),
    "a file in the folder's place": (
        NODE.replace("kept", "box.toml") + HOST + LOADS,
        "name another",
    ),
    "no lags": (more("").replace("channels", "lags = 0\nchannels"), "at least 1"),
    "a rank too high": (more("[summary]\nrank = 5\n"), "lower it, or leave it out"),
    "time that runs backwards": (
        more("").replace("channels", "half_life_s = -1\nchannels"),
        "expected a time in seconds, above 0",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_line(tmp_path, monkeypatch, capsys, mistake):
    """Status 2; and the folder is as it was."""
    text, cure = MISTAKES[mistake]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "box.toml").write_text(text)
    ran = shell(monkeypatch, capsys)("up", "--config", "box.toml")

    assert (2, "", 1) == (ran.status, ran.out, ran.err.count("\n"))
    assert ran.err.startswith("submerge: ")
    assert cure in ran.err
    assert ["box.toml"] == [path.name for path in tmp_path.iterdir()]
