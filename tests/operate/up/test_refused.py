"""A start that is refused leaves nothing behind: no store, and no folder that it made."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

pytest.importorskip("grpc")

from submerge import UsageError
from submerge_operate.up.box import run
from submerge_operate.up.config import load

GRPC = '[listen.grpc]\naddress = "127.0.0.1:{port}"\n'
FREE = GRPC.format(port=0)
SENSOR = 'kind = "program"\ncommand = ["{command}"]'
BOX = """
{top}
node = "desk"
folder = "{folder}"
[sensor]
{sensor}
[schema]
channels = ["flow", "heat"]
{more}
"""


def refused(folder: Path, match: str, *, top: str = "", sensor: str = "", more: str = "") -> None:
    """Start it; it is refused."""
    path, port = folder / "box.toml", 0
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        sensor = sensor or SENSOR.format(command="true")
        kept = folder / "new" / "kept"
        text = BOX.format(top=top, folder=kept, sensor=sensor, more=more.format(port=port))
        path.write_text(text)
        with pytest.raises(UsageError, match=match):
            run(load(path, {}), print)


@pytest.mark.parametrize(
    ("match", "parts"),
    [
        ("can be run", {"sensor": SENSOR.format(command="no-such-program")}),
        ("PEM", {"top": 'kit = "none.kit"', "more": FREE}),
        ("nowhere", {"more": f'[listen]\nroster = "nowhere"\n{FREE}insecure = true\n'}),
        ("listen.grpc.address", {"more": f"{GRPC}insecure = true\n"}),
        ("status.address", {"more": '[status]\naddress = "127.0.0.1:{port}"\n'}),
    ],
)
def test_a_refused_start_of_a_new_folder_leaves_nothing(tmp_path, match, parts):
    refused(tmp_path, match, **parts)
    assert ["box.toml"] == [each.name for each in tmp_path.iterdir()]


def test_a_folder_that_was_there_stays(tmp_path):
    kept = tmp_path / "new" / "kept"
    kept.mkdir(parents=True)
    refused(tmp_path, "can be run", sensor=SENSOR.format(command="no-such-program"))
    assert kept.is_dir()
    assert not list(kept.iterdir())
