"""`submerge doctor`: what is broken is found, and what to do is said; broken things are real."""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import subprocess
import sys
from contextlib import closing

import numpy as np
import pytest

from submerge_aggregator.store import Store
from submerge_client.config.client_config import load
from submerge_client.trial import Listened, try_out
from submerge_operate.doctor import client as doctor_client
from submerge_operate.doctor import findings as doctor_software
from submerge_operate.doctor.findings import Finding, summary_of, text_of
from support.commands import shell, stands_at_its_socket
from support.house import House

CLIENT = """
node = "pump-1"
group = "pumps"
parent = "root"
state = "pump-1.state"
[uplink]
url = "memory://here"
[schema]
channels = ["flow", "pressure"]
[summary]
rank = 1
[sensor]
kind = "file"
paths = ["history.csv"]
"""

AGGREGATOR = """
node = "root"
store = "root.db"
[listen.grpc]
address = "127.0.0.1:{grpc}"
insecure = true
[status]
address = "127.0.0.1:{status}"
[groups.pumps.summary]
rank = 1
[groups.pumps.schema]
channels = ["flow", "pressure"]
"""


@pytest.fixture
def here(monkeypatch, tmp_path):
    """A folder with what a client needs, and the program in it."""
    monkeypatch.chdir(tmp_path)
    tmp_path.joinpath("client.toml").write_text(CLIENT)
    tmp_path.joinpath("history.csv").write_text("flow,pressure\n1,2\n3,4\n5,7\n")
    return tmp_path


@pytest.fixture
def doctor(here, monkeypatch, capsys):
    """Run it; return the status, and findings by what they are of."""
    run = shell(monkeypatch, capsys)

    def look(text: str | None = None, *, name: str = "client.toml"):
        if text is not None:
            here.joinpath(name).write_text(text)
        ran = run("doctor", "--config", name, "--json")
        findings: dict[str, list[Finding]] = {}
        for each in json.loads(ran.out)["findings"] if ran.out else []:
            findings.setdefault(each["check"], []).append(Finding(**each))
        return ran.status, findings

    return look


@pytest.fixture
def taken():
    """A port of 127.0.0.1 that is somebody's, on which nobody listens."""
    with socket.socket() as owner:
        owner.bind(("127.0.0.1", 0))
        yield owner.getsockname()[1]


def states(findings) -> list[str]:
    return [finding.state for finding in findings]


# The command


def test_a_client_that_lacks_nothing_is_told_so(doctor):
    """Nothing fails, and the status is 0; whether this machine's clock is in step, it says."""
    status, found = doctor()

    assert 0 == status
    del found["clock"]
    assert {"ok"} == {each.state for several in found.values() for each in several}
    assert {"software", "client", "disk", "memory", "messages", "parent", "sensor"} == set(found)


def test_what_fails_makes_the_status_1(doctor):
    """And says what to do."""
    status, found = doctor(CLIENT.replace("history.csv", "nowhere.csv"))

    assert 1 == status
    (sensor,) = found["sensor"]
    assert ("fails", True) == (sensor.state, "nowhere.csv" in sensor.message)
    assert sensor.hint


@pytest.mark.usefixtures("here")
def test_it_prints_lines_for_a_terminal(monkeypatch, capsys):
    """None over 80 columns, each look with its state first, and how many there were."""
    ran = shell(monkeypatch, capsys)("doctor", "--config", "client.toml")
    lines = ran.out.splitlines()

    assert 80 >= max(map(len, lines))
    assert lines[0].startswith("ok       software    submerge ")
    assert lines[-1].startswith("8 checks: ")


@pytest.mark.parametrize("text", ["node = 3", "node = ", 'node = "a"\nstate = "b"', "x = 1"])
def test_a_configuration_that_cannot_be_is_status_2(text, here, monkeypatch, capsys):
    """In one line, as by the program itself."""
    here.joinpath("bad.toml").write_text(text)
    ran = shell(monkeypatch, capsys)("doctor", "--config", "bad.toml", "--json")

    assert (2, "") == (ran.status, ran.out)
    assert 1 == len(ran.err.splitlines())


def test_words_of_others_do_nothing_to_a_terminal():
    """A certificate may be of anybody; long words are broken too."""
    text = text_of(Finding("parent", "fails", "it is \x1b[2J" + "x" * 200, "/" * 100))

    assert "\x1b" not in text
    assert 80 >= max(map(len, text.splitlines()))


def test_it_counts_what_is_to_be_done():
    """The last line, for people in a hurry."""
    bad, anomaly_score, good = (Finding("x", state, "") for state in ("fails", "warning", "ok"))

    assert "4 checks: 2 fail, 1 warning" == summary_of([bad, bad, anomaly_score, good])
    assert "1 check: 1 fails" == summary_of([bad])
    assert "2 checks: 2 warnings" == summary_of([anomaly_score, anomaly_score])
    assert "2 checks: all fine" == summary_of([good, good])


def test_what_is_not_installed_is_named_with_its_extra(doctor, monkeypatch):
    """Nothing else is looked at: it would fail for the same reason."""
    monkeypatch.setattr(doctor_software, "_exists", lambda module: module != "grpc")
    text = CLIENT.replace("memory://here", "grpc://127.0.0.1:1").replace(
        "[schema]", "insecure = true\n[schema]"
    )
    status, found = doctor(text)

    assert (1, {"software"}) == (status, set(found))
    assert "pip install 'submerge[grpc]'" == found["software"][0].hint


# The disk


@pytest.mark.parametrize("place", ["file/pump-1.state", "/proc/pump-1.state"])
def test_a_place_that_cannot_be_written_fails(place, here, doctor):
    """A file where a folder should be; a file system that takes none."""
    here.joinpath("file").write_text("")
    status, found = doctor(CLIENT.replace("pump-1.state", place))

    assert (1, ["fails"]) == (status, states(found["disk"]))
    assert place in found["disk"][0].message


def test_a_folder_that_is_not_there_yet_will_be(here, doctor):
    """The program makes it; nothing is left of the look."""
    status, found = doctor(CLIENT.replace("pump-1.state", "a/b/pump-1.state"))

    assert (0, ["ok"]) == (status, states(found["disk"]))
    assert {"client.toml", "history.csv"} == {path.name for path in here.iterdir()}


# The parent


def over_grpc(port: int) -> str:
    return CLIENT.replace(
        'url = "memory://here"', f'url = "grpc://127.0.0.1:{port}"\ninsecure = true'
    )


def test_a_port_on_which_nobody_listens_fails(doctor, taken):
    """With what to look for; the rest is looked at all the same."""
    status, found = doctor(over_grpc(taken))

    assert (1, ["fails"]) == (status, states(found["parent"]))
    assert f"nothing listens on 127.0.0.1:{taken}" == found["parent"][0].message
    assert ["ok"] == states(found["sensor"])


def test_a_host_that_nobody_knows_fails(doctor, monkeypatch):
    """A name that is misspelt, or no network."""

    def unknown(*_: object, **__: object):
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    status, found = doctor(over_grpc(8470).replace("127.0.0.1", "rooot"))

    assert 1 == status
    assert "unknown host 'rooot'" in found["parent"][0].message


# The sensor


def test_a_channel_that_is_never_there_is_a_warning(here, doctor):
    """A wire that came off, or a name that is misspelt."""
    here.joinpath("history.csv").write_text("flow,pressure\n1,\n")
    status, found = doctor()

    assert (0, ["warning"]) == (status, states(found["sensor"]))
    assert "nothing of pressure" in found["sensor"][0].message


def test_a_sensor_without_rows_fails(here, doctor):
    """It has ended, or is silent."""
    here.joinpath("history.csv").write_text("flow,pressure\n")
    status, found = doctor()

    assert (1, ["fails"]) == (status, states(found["sensor"]))


def config_with(here, sensor: str):
    start = CLIENT.index("[sensor]")
    here.joinpath("client.toml").write_text(CLIENT[:start] + f"[sensor]\n{sensor}\n")
    return load("client.toml", {})


@pytest.fixture
def piped(here, monkeypatch):
    """A client that reads standard input, on which somebody has said this, and ended."""

    def config(said: str):
        reader, writer = os.pipe()
        os.write(writer, said.encode())
        os.close(writer)
        monkeypatch.setattr(sys, "stdin", os.fdopen(reader))
        return config_with(here, 'kind = "ndjson"')

    yield config
    sys.stdin.close()


def test_standard_input_that_ends_without_a_row_wants_a_program(piped):
    """As from /dev/null; it is not a matter of milliseconds."""
    (found,) = doctor_client.sensor(piped(""), is_terminal=lambda: False)

    assert ("fails", "standard input ended without a row") == (found.state, found.message)
    assert "pipe your program into doctor" in found.hint


def test_a_name_that_is_no_channel_is_named(piped):
    """Beside those that are: it is misspelt, mostly."""
    (found,) = doctor_client.sensor(piped('{"flw": 1}\n'), is_terminal=lambda: False)

    assert "fails" == found.state
    assert found.message.endswith('unknown "flw"; channels are flow, pressure')
    assert "client --test" in found.hint


def test_a_trial_without_a_row_is_status_1(piped, capsys):
    """Whoever writes it in a script need not read what it printed."""
    with pytest.raises(SystemExit) as ended:
        try_out(piped('{"flw": 1}\n'), seconds=2.0)

    assert 1 == ended.value.code
    assert 'unknown "flw"; channels are flow, pressure' in capsys.readouterr().out.splitlines()


def test_a_trial_with_rows_ends_well(piped, capsys):
    """What it met beside them is said all the same."""
    try_out(piped('{"flow": 1, "a\\u001b[2J": 2}\n{"flow": 2, "pressure": 3}\n'), seconds=2.0)
    out = capsys.readouterr().out

    assert out.startswith("2 rows of 2 channels")
    assert 'unknown "a\\u001b[2J"; channels are flow, pressure' in out


def test_a_terminal_is_no_sensor(here):
    """It would wait for somebody to type readings."""
    config = config_with(here, 'kind = "ndjson"')
    (found,) = doctor_client.sensor(config, is_terminal=lambda: True)

    assert "warning" == found.state
    assert "| submerge doctor" in found.hint


def test_one_program_is_a_client_and_its_root(doctor, here):
    """Both are looked at, by the configuration of `submerge up`."""
    box = CLIENT.replace('parent = "root"\nstate = "pump-1.state"', 'folder = "kept"')
    here.joinpath("kept").mkdir()
    status, found = doctor(
        box.replace('[uplink]\nurl = "memory://here"\n', "").replace("rank = 1", ""),
        name="box.toml",
    )

    assert (0, "ok") == (status, found["sensor"][0].state)
    assert {"client", "aggregator", "store", "parent"} <= found.keys()
    assert 2 == len(found["disk"])


def test_a_slow_sensor_is_not_waited_for(here):
    """It says how to try it all the same."""
    sensor = (
        'kind = "mqtt"\nurl = "mqtt://127.0.0.1"\ninsecure = true\ntopic = "{channel}"'
        "\nperiod_s = 3600"
    )
    (found,) = doctor_client.sensor(config_with(here, sensor))

    assert ("warning", True) == (found.state, "60 min" in found.message)


@pytest.mark.parametrize(
    ("topic", "counts", "state"),
    [
        ('topics = ["zigbee2mqtt/+"]', {}, "warning"),
        ('topics = ["zigbee2mqtt/+"]', {"unreachable": 3}, "fails"),
        ('topic = "{channel}"', {}, "fails"),
    ],
)
def test_devices_may_be_silent_while_they_are_listened_to(here, monkeypatch, topic, counts, state):
    """They speak once in minutes; a broker that is not there is another matter."""
    nothing = Listened(np.empty((0, 2)), counts, 22.0, ended=False)
    monkeypatch.setattr(doctor_client, "listen", lambda *_, **__: nothing)
    sensor = f'kind = "mqtt"\nurl = "mqtt://127.0.0.1"\ninsecure = true\n{topic}'
    (found,) = doctor_client.sensor(config_with(here, sensor))

    assert state == found.state
    assert (topic[:6] == "topics" and not counts) == ("the broker's rules" in found.hint)


def test_a_broker_s_refusal_is_told_in_its_words(here, monkeypatch):
    """Not that the names of channels may be wrong."""
    refused = Listened(
        *(np.empty((0, 2)), {"refused": 1}, 22.0), problems=("subscription refused: topic a/#",)
    )
    monkeypatch.setattr(doctor_client, "listen", lambda *_, **__: refused)
    sensor = 'kind = "mqtt"\nurl = "mqtt://127.0.0.1"\ninsecure = true\ntopics = ["a/#"]'
    (found,) = doctor_client.sensor(config_with(here, sensor))

    assert ("fails", True) == (found.state, "subscription refused: topic a/#" in found.message)


# An aggregator


@pytest.fixture
def root(doctor, taken):
    """Look at an aggregator, none of whose ports is its own yet."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        free = {"grpc": taken, "status": other.getsockname()[1]}

    def look(**ports: int):
        return doctor(AGGREGATOR.format(**free | ports), name="root.toml")

    return look


def test_where_somebody_else_listens_an_aggregator_cannot(root):
    """The port that is another's fails, the other is free."""
    status, found = root()

    assert (1, ["fails", "ok"]) == (status, states(found["listen"]))
    assert "ss -ltnp" in found["listen"][0].hint


def test_a_store_that_is_not_there_is_begun(root):
    """Nothing fails but the port."""
    _, found = root()

    assert ["ok"] == states(found["store"])
    assert "will be created" in found["store"][0].message


def test_a_store_that_is_whole_says_what_it_holds(here, root):
    """It is looked at, and left as it was."""
    store = Store(here / "root.db")
    store.write({("a", "b"): b"c"})
    store.close()
    before = here.joinpath("root.db").read_bytes()
    _, found = root()

    assert "root.db: 1 records" in found["store"][0].message
    assert before == here.joinpath("root.db").read_bytes()


@pytest.mark.parametrize("what", ["damaged", "another", "before 28 November 2026"])
def test_a_store_that_is_none_fails(here, root, what):
    """A card that failed; a path that is wrong; a store that is no longer read."""
    path = here / "root.db"
    if what == "damaged":
        path.write_bytes(b"x" * 9000)
    elif what != "another":
        Store(path).close()
        with closing(sqlite3.connect(path)) as sql:
            sql.execute("PRAGMA user_version = 6")
    else:
        with sqlite3.connect(path) as sql:
            sql.execute("CREATE TABLE t (a)")
        sql.close()
    _, found = root()

    assert ["fails"] == states(found["store"])
    assert what in found["store"][0].message


def test_a_store_that_another_process_holds_is_a_warning(here, root):
    """It does not answer as an aggregator would."""
    store = Store(here / "root.db")
    try:
        store.write({("a",): b"b"})
        _, found = root()
    finally:
        store.close()

    assert ["warning"] == states(found["store"])


def test_a_running_aggregator_has_its_ports_itself(here, root, monkeypatch):
    """What is in use is its own; whether it is well, its status door says, or does not."""
    with House(here) as house:
        stands_at_its_socket(house, monkeypatch)
        status, found = root()

    assert 0 == status
    assert "the aggregator runs" in found["store"][0].message
    assert "listen" not in found
    assert ["warning"] == states(found["status"])


@pytest.mark.parametrize(
    ("urls", "mode", "state", "said"),
    [
        (
            "json://127.0.0.1/s3cret\ntgram://1234567890:s3cret_abcdefg/12\n",
            0o600,
            "ok",
            "2 services",
        ),
        ("json://127.0.0.1/s3cret\n", 0o644, "fails", "got mode 0644"),
        ("", 0o600, "fails", "expected one URL per line, got none"),
        (
            "syslog://s3cret\n",
            0o600,
            "fails",
            "expected a service on the network, got syslog, line 1",
        ),
    ],
)
def test_services_of_apprise_are_looked_at_and_not_shown(here, doctor, urls, mode, state, said):
    """The file, its mode, and each URL by its scheme; nothing is sent."""
    here.joinpath("apprise.urls").write_text(urls)
    here.joinpath("apprise.urls").chmod(mode)
    text = AGGREGATOR.format(grpc=0, status=0)
    _, found = doctor(f'{text}[alarms.apprise]\nurls_file = "apprise.urls"\n', name="root.toml")
    (finding,) = found["apprise"]

    assert (state, True) == (finding.state, said in finding.message), finding
    assert bool(finding.hint) == (state == "fails")
    assert "s3cret" not in str(finding)


def test_a_missing_apprise_says_how_to_get_it(here, doctor, monkeypatch):
    """In one line; nothing else needs it."""
    monkeypatch.setitem(sys.modules, "apprise", None)
    here.joinpath("apprise.urls").write_text("json://127.0.0.1/\n")
    here.joinpath("apprise.urls").chmod(0o600)
    text = AGGREGATOR.format(grpc=0, status=0)
    _, found = doctor(f'{text}[alarms.apprise]\nurls_file = "apprise.urls"\n', name="root.toml")

    assert ["fails"] == states(found["apprise"])
    assert "pip install 'submerge[notify]'" == found["apprise"][0].hint


LOADED = """
import sys
from submerge_operate.cli import main
sys.argv = ["submerge", "doctor", "--config", "client.toml"]
main()
print(*sys.modules)
"""


@pytest.mark.slow
def test_a_client_s_extra_is_enough(here):
    """Nothing of an aggregator is loaded for a client, nor what makes certificates or tables."""
    done = subprocess.run(
        [sys.executable, "-c", LOADED], capture_output=True, text=True, check=True, cwd=here
    )
    names = set(done.stdout.splitlines()[-1].split())
    loaded = {name.split(".")[0] for name in names}

    assert "submerge_client" in loaded
    assert not {"cryptography", "starlette", "rich", "scipy"} & loaded
    # The package itself has a table of its commands, which is read as all are.
    assert not {name for name in names if name.startswith("submerge_aggregator.")}
