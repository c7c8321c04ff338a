"""`submerge client --format`: how standard input is read, in place of what the file says."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from submerge import UsageError
from submerge_client.command import command

FILE = """
node = "a"
group = "g"
parent = "root"
state = "a.state"
[uplink]
url = "grpc://127.0.0.1:1"
insecure = true
[schema]
channels = ["m/f"]
scaling = "none"
[sensor]
kind = "{kind}"
[scores]
to = "{to}"
"""


@pytest.mark.parametrize(
    ("form", "kind", "to", "message"),
    [
        ("influx", "ndjson", "stdout", "scores.to: expected another place"),
        ("influx", 'mqtt"\ntopics = ["a/+"]\nurl = "mqtts://b', "none", "topics"),
        ("ndjson", 'influx"\nmode = "output', "none", "mode"),
    ],
)
def test_settings_of_another_kind_are_refused(tmp_path, form, kind, to, message):
    """The kind is replaced, and the other settings of [sensor] stay: those must be its own."""
    path = tmp_path / "client.toml"
    path.write_text(FILE.format(kind=kind, to=to))
    ended = CliRunner().invoke(command, ["--config", str(path), "--format", form])

    assert isinstance(ended.exception, UsageError)
    assert message in str(ended.exception)


def test_other_forms_are_refused():
    """There are two."""
    ended = CliRunner().invoke(command, ["--config", "x.toml", "--format", "csv"])

    assert 2 == ended.exit_code
    assert "'csv' is not one of 'ndjson', 'influx'" in ended.output
