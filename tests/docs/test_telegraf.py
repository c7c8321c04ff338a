"""The page on Telegraf: its configurations are read, and its lines are rows without a gap."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import msgspec
import pytest

from submerge_client.config.client_config import load
from submerge_client.config.schemas import SchemaConfig
from submerge_client.config.sensors import AnySensor
from submerge_client.sensors.influx.line_protocol import parse
from submerge_client.sensors.influx.readings import KINDS, MetricDecoder, SeriesNames, TimedRows
from submerge_client.sensors.tally import ProblemTally, no_log

PAGE = (Path(__file__).parents[2] / "docs" / "telegraf.md").read_text(encoding="utf-8")
PROTOCOLS = dict(re.findall(r"^### (.+?)\n(.*?)(?=^### |\Z)", PAGE, re.MULTILINE | re.DOTALL))


def blocks(text: str, kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def test_all_four_protocols_are_there():
    """Those that the page promises."""
    assert ["OPC UA", "Modbus", "Siemens S7", "SNMP"] == list(PROTOCOLS)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_lines_are_rows(protocol):
    """The lines of a plugin fill each channel of the configuration beside them."""
    telegraf, client = map(tomllib.loads, blocks(PROTOCOLS[protocol], "toml"))
    (lines,) = blocks(PROTOCOLS[protocol], "text")
    schema = msgspec.convert({"scaling": "fleet", **client["schema"]}, SchemaConfig)
    sensor = msgspec.convert(client["sensor"], AnySensor)
    rows = TimedRows(len(schema.sensed), 1.0)
    tally = ProblemTally(no_log, *KINDS)
    decoder = MetricDecoder([each.name for each in schema.sensed], sensor, rows, tally)
    for line in lines.encode().splitlines():
        decoder.take(1, line, 0.0)

    assert "inputs" in telegraf
    # A row without a gap closes by itself.
    assert [1767225600000000000] == [row.time for row in rows.take(0.0)]
    assert 0 == tally.counts["malformed"]


def test_the_client_is_configured(tmp_path):
    """The whole file is one that loads."""
    (text,) = [block for block in blocks(PAGE, "toml") if "edge.toml\nnode" in block]
    (tmp_path / "edge.toml").write_text(text)

    assert "influx" == load(tmp_path / "edge.toml", {}).sensor.__struct_config__.tag


def test_names_in_the_table():
    """Each template of the table gives the name beside it."""
    rows = re.findall(r"^\| `\"(.+?)\"`.*? \| `(.+?)` \|$", PAGE, re.MULTILINE)
    (series,) = re.findall(r"`(modbus,host=a\S+) flow", PAGE)
    named = [
        SeriesNames([], template=template, ignored=("host",)).find(series)[0].name_of("flow")
        for template, _ in rows
        if "{" in template
    ]

    assert [name for template, name in rows if "{" in template] == named
    assert 3 == len(named)


def test_the_metric_is_one():
    """The example of a score is line protocol."""
    (line,) = re.findall(r"^submerge,node=.*$", PAGE, re.MULTILINE)

    assert "s7comm/rpm" == parse(line.encode()).fields["top"]
