"""One configuration is that of a client and of its root."""

from __future__ import annotations

from pathlib import Path

import pytest

from submerge import UsageError
from submerge_operate.up.config import load

BOX = """
node = "desk"
folder = "kept"
[sensor]
kind = "ndjson"
[schema]
channels = ["flow [l/min]", "heat"]
scaling = "fleet"
"""


def box(folder: Path, text: str = BOX, **environ: str):
    path = folder / "box.toml"
    path.write_text(text)
    return load(path, environ)


def test_both_parts_mean_the_same(tmp_path):
    """One schema, one rank, one group; each keeps its own file, as in a fleet."""
    config = box(tmp_path)
    client, root = config.client, config.aggregator
    (name, group), *_ = root.groups.items()

    assert client.built_schema.is_like(group.plan.schema)
    assert (client.group, client.parent) == (name, root.node) == ("box", "desk-root")
    assert client.uplink.url == "memory://desk-root"
    assert client.summary.shared == group.summary
    assert (Path("kept/client.state"), Path("kept/root.db")) == (client.state, root.store)
    assert root.listen.grpc is root.listen.mqtt is root.parent is None


def test_others_may_come_in_where_it_says_so(tmp_path):
    """By the sections that any root has."""
    listen = '[listen.grpc]\naddress = "127.0.0.1:0"\ninsecure = true\n'
    assert box(tmp_path, BOX + listen).aggregator.listen.grpc.insecure


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (BOX.replace('kind = "ndjson"', 'kind = "njson"'), "sensor.kind"),
        (BOX + "[listen.grpc]\naddress = 'x'\n", "listen.grpc"),
        (BOX.replace('node = "desk"', ""), "node"),
        (BOX + '[uplink]\nurl = "grpc://x:1"\n', "uplink"),
        (BOX.replace("heat", "flow"), "channels"),
    ],
)
def test_a_mistake_is_one_line_that_names_its_place(tmp_path, text, message):
    with pytest.raises(UsageError, match=message) as caught:
        box(tmp_path, text)

    assert "\n" not in str(caught.value)


def test_only_a_client_is_a_processor(tmp_path):
    """`up` prints its own lines: it takes metrics of Telegraf as an output, and passes none on."""
    metrics = BOX.replace('"ndjson"', '"influx"')

    with pytest.raises(UsageError, match=r'sensor\.mode: expected "output"'):
        box(tmp_path, metrics)
    assert "output" == box(tmp_path, metrics, SUBMERGE__SENSOR__MODE="output").sensor.mode


def test_a_file_that_is_not_there_is_written_by_init(tmp_path):
    """`submerge up init` is no command."""
    with pytest.raises(UsageError, match=r"write one: submerge init$"):
        load(tmp_path / "box.toml", {})


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_an_editor_that_writes_another_encoding_is_named(tmp_path, encoding):
    (tmp_path / "box.toml").write_text(BOX, encoding=encoding)
    with pytest.raises(UsageError, match="save it as UTF-8"):
        load(tmp_path / "box.toml", {})


def test_the_page_has_a_configuration_that_is_read(tmp_path):
    """And what it says of names and files."""
    page = (Path(__file__).parents[3] / "docs" / "one-machine.md").read_text()
    toml = page.partition("```toml\n")[2].partition("```")[0]
    config = box(tmp_path, toml)

    assert ("desk-root", "box") == (config.root, config.group)
    assert Path("kept/root.db") == config.aggregator.store
