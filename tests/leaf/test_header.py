"""The header that a leaf is compiled with, from each place where a schema is found."""

from __future__ import annotations

import pytest

from schema_header import header, label, schema_in
from submerge import Schema
from submerge.protocol.messages import Counts, Model
from submerge.schema import Channel, Scaling
from submerge_proto.wire import codec

SCHEMA = Schema((Channel('a "b"', "°C"), Channel("c")), scaling=Scaling((1.5, 0.1), (2.0, 1e-3)))

CONFIG = """
node = "n"
group = "g"
parent = "root"
state = "n.state"
[uplink]
url = "mqtt://127.0.0.1:1883"
insecure = true
[sensor]
kind = "ndjson"
[schema]
center = "fleet"
scaling = "{scaling}"
channels = [{channels}]
"""
FIXED = (
    '{ name = \'a "b"\', unit = "°C", offset = 1.5, scale = 2.0 }, '
    '{ name = "c", offset = 0.1, scale = 1e-3 }'
)


def test_a_configuration_a_model_and_a_text_give_the_same_header(tmp_path):
    """Numbers to their last digit, and names as strings of C."""
    model = Model(
        *("g", 1, SCHEMA.canonical, SCHEMA.fingerprint, None, None, Counts(), 1),
        *((0.0, 0.0, 0.0), 0.0, 0.0),
    )
    (tmp_path / "model.bin").write_bytes(codec.encode(model))
    (tmp_path / "schema.json").write_bytes(SCHEMA.canonical + b"\n")
    (tmp_path / "edge.toml").write_text(CONFIG.format(scaling="fixed", channels=FIXED))
    found = [schema_in(tmp_path / name) for name in ("model.bin", "schema.json", "edge.toml")]

    assert [SCHEMA] * 3 == found
    text = header(SCHEMA)
    assert '    "a \\042b\\042",\n    "c",\n' in text
    assert "schema_offset[2] = {1.5, 0.1};" in text


def test_a_scale_that_is_still_measured_is_refused(tmp_path):
    """A leaf is compiled with it; a model of the fleet has it once it is known."""
    (tmp_path / "edge.toml").write_text(CONFIG.format(scaling="fleet", channels='"a", "b"'))
    with pytest.raises(SystemExit, match="give a model of the fleet"):
        schema_in(tmp_path / "edge.toml")


def test_a_long_name_is_cut_between_characters():
    """Alarms have 40 letters and 100 bytes of it, and text of whole characters."""
    assert b"x" * 40 == label("x" * 50)
    assert 99 == len(label("€" * 50))
