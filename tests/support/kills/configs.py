"""Configurations of a fleet of programs: the root, two aggregators, and two clients of each.

Everything that takes minutes in the field takes a part of a second here.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from support.kills.plan import AGGREGATORS
from support.programs import free_port

GROUP = "room"

CENTER = 'center = "fleet"'
"""One mean: the judge adds up what each node holds, and squares about their own means do not."""

TIMING = """
[advanced]
patience_s = 0.5
cap_s = 1
[timing]
report_every_s = 0.3
"""


class Way(Protocol):
    """How children reach their parent."""

    def up(self, parent: str) -> str:
        """Return the settings of a link to it."""

    def listens(self, node: str) -> str:
        """Return the section that has it listen."""


class OverGrpc(NamedTuple):
    """ports : of each aggregator, on 127.0.0.1"""

    ports: dict[str, int]

    @classmethod
    def on_free_ports(cls) -> OverGrpc:
        return cls({node: free_port() for node in AGGREGATORS})

    def up(self, parent: str) -> str:
        return f'url = "grpc://127.0.0.1:{self.ports[parent]}"\ninsecure = true\n'

    def listens(self, node: str) -> str:
        address = f"127.0.0.1:{self.ports[node]}"
        return f'[listen.grpc]\naddress = "{address}"\ninsecure = true\n'


class OverMqtt(NamedTuple):
    """port : a broker's, on 127.0.0.1"""

    port: int

    def up(self, parent: str) -> str:
        return f'url = "mqtt://127.0.0.1:{self.port}"\ninsecure = true\n'

    def listens(self, node: str) -> str:
        return f"[listen.mqtt]\n{self.up(node)}"


def client(
    node: str, parent: str, way: Way, channels: Sequence[str], state: Path, *, scores: bool = False
) -> str:
    """Return a client's configuration; with `scores` it writes them to standard output.

    It raises no alarms: what these withhold is counted, and is in no sum that the judge knows.
    """
    return f"""
node = "{node}"
group = "{GROUP}"
parent = "{parent}"
state = "{state}"
log = "debug"
[uplink]
{way.up(parent)}
[sensor]
kind = "ndjson"
[scores]
to = "{"stdout" if scores else "none"}"
[schema]
channels = {list(channels)}
{CENTER}
[summary]
rank = 2
oversample = 2
[alarms]
at_most = "off"
{TIMING}
checkpoint_every_s = 0.5
min_rows = 1
"""


def aggregator(
    node: str, parent: str | None, way: Way, channels: Sequence[str], store: Path
) -> str:
    """Return an aggregator's configuration."""
    schema = f"[groups.{GROUP}.schema]\nchannels = {list(channels)}\n{CENTER}\n"
    schema = schema if parent is None else ""
    above = "" if parent is None else f'[parent]\nname = "{parent}"\n{way.up(parent)}'
    return f"""
node = "{node}"
store = "{store}"
log = "debug"
{way.listens(node)}
{above}
[status]
address = ""
[groups.{GROUP}.summary]
rank = 2
oversample = 2
{schema}
{TIMING}
model_every_s = 0.3
"""
