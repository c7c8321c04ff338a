"""A running fleet goes over from kits without roles to kits with roles, as real programs.

Every reading that was fed is counted at the root after each step, and nothing is ever refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner

pytest.importorskip("grpc")
pytest.importorskip("cryptography")

from submerge.errors import UsageError
from submerge.protocol.permission import Permission
from submerge_aggregator.questions.views import socket_of
from submerge_client.kit import read_kit
from submerge_files.console.admin_client import AdminClient
from submerge_files.console.ways import NoAnswer, UnixSocket
from submerge_operate import cli
from support.certified import LOOPBACK, Certified
from support.kills import configs
from support.patience import until
from support.programs import Program, Programs, free_port

pytestmark = pytest.mark.slow

CHANNELS = [f"c{i}" for i in range(4)]
ROOT, SITE, PUMP = ALL = ("root", "site", "pump")
PARENTS = {ROOT: None, SITE: ROOT, PUMP: SITE}
ROLES = {
    ROOT: Permission("aggregator"),
    SITE: Permission("aggregator", (configs.GROUP,)),
    PUMP: Permission("client", (configs.GROUP,)),
}
ROWS = 20
"""Fed in one step."""


class OverTls(NamedTuple):
    """gRPC with the kits of both ends."""

    ports: dict[str, int]

    def up(self, parent: str) -> str:
        return f'url = "grpcs://{LOOPBACK}:{self.ports[parent]}"\n'

    def listens(self, node: str) -> str:
        return f'[listen.grpc]\naddress = "{LOOPBACK}:{self.ports[node]}"\n'


class Fleet:
    """A root, a site and a pump, each a program with a kit."""

    def __init__(self, programs: Programs) -> None:
        self._programs, self._folder = programs, programs.folder
        self._kits = Certified(programs.folder)
        self._way = OverTls({ROOT: free_port(), SITE: free_port()})
        self._started: list[Program] = []
        self._now: dict[str, Program] = {}
        self.fed = 0

    def renew(self, node: str, permission: Permission | None) -> None:
        """Bring a node a kit in place of its old one."""
        hosts = () if node == PUMP else (LOOPBACK,)
        self._kits.kit(node, *hosts, permission=permission)

    def start(self, node: str, listen: str = "") -> None:
        """Start a program, or end it and start it again."""
        if node in self._now:
            assert 0 == self._now[node].end()
        parent, way, folder = PARENTS[node], self._way, self._folder
        kit = f'kit = "{folder / node}.kit"\n'
        if node == PUMP:
            text = configs.client(node, str(parent), way, CHANNELS, folder / f"{node}.state")
        else:
            text = configs.aggregator(node, parent, way, CHANNELS, folder / f"{node}.db")
        command = "client" if node == PUMP else "aggregator"
        path = self._programs.file(f"{node}.toml", f"{kit}{text}{listen}")
        self._now[node] = self._programs.start(command, "--config", path)
        self._started.append(self._now[node])

    def feeds(self) -> None:
        """Have the pump read, and wait until the root counts every reading."""
        for row in range(self.fed, self.fed + ROWS):
            line = json.dumps([float(row + i) for i in range(len(CHANNELS))])
            assert self._now[PUMP].write(f"{line}\n".encode())
        self.fed += ROWS
        until(lambda: self.counted() == self.fed, lambda: f"{self.counted()} of {self.fed}")

    def counted(self) -> int:
        """Readings at the root; 0 while it does not answer."""
        admin = AdminClient(UnixSocket(socket_of(self._folder / f"{ROOT}.db")))
        try:
            views = json.loads(admin.get("nodes"))
        except NoAnswer:
            return 0
        parts = [part for view in views for part in (*view["rows"], *view["sealed"])]
        return sum(part["learnt"] + part["withheld"] for part in parts)

    def refusals(self) -> list[str]:
        """Return every line of every process that says that something was refused for good."""
        return [
            f"{line.what} {line.facts}"
            for program in self._started
            for line in program.lines
            if line.what in ("join refused", "report refused", "refused by the parent")
            or line.facts.get("reason") == "denied"
        ]


@pytest.fixture
def fleet() -> Iterator[Fleet]:
    with Programs() as programs:
        yield Fleet(programs)


@pytest.mark.parametrize("order", [ALL, ALL[::-1]], ids=["from the top", "from the bottom"])
def test_no_node_is_ever_unable_to_report(fleet, order):
    """One kit after the other, then without kits that have no role."""
    for node in ALL:
        fleet.renew(node, None)
        # As versions without roles did: a fence was believed.
        fleet.start(node, '[listen]\naggregators = ["*"]\n' if node == ROOT else "")
    fleet.feeds()
    fleet.start(ROOT)  # the upgrade: from here on the store says what names stand for
    fleet.feeds()
    for node in order:
        fleet.renew(node, ROLES[node])
        fleet.start(node)
        fleet.feeds()
    for node in (ROOT, SITE):
        fleet.start(node, "[listen]\nlegacy_kits = false\n")
    fleet.feeds()

    assert [] == fleet.refusals()


def test_certificates_come_over_the_wire_to_a_site_and_through_it(fleet, tmp_path: Path):
    """Both put theirs into their kits, go on reporting, and the root hears when they end."""
    for node in ALL:
        fleet.renew(node, ROLES[node])
        fleet.start(node)
    fleet.feeds()
    kits = {node: fleet._folder / f"{node}.kit" for node in (SITE, PUMP)}
    before = {node: read_kit(kit) for node, kit in kits.items()}
    maker = Certified(tmp_path / "new")
    maker.authority = fleet._kits.authority
    sent = {
        node: maker.kit(node, *hosts, permission=ROLES[node], lasts_s=7200.0, key_of=kits[node])
        for node, hosts in ((SITE, (LOOPBACK,)), (PUMP, ()))
    }
    store = str(fleet._folder / f"{ROOT}.db")
    paths = [str(each) for each in sent.values()]
    ran = CliRunner().invoke(cli.submerge, ["nodes", "renew", *paths, "--store", store])
    assert (0, "certificates sent: 2\n") == (ran.exit_code, ran.output)
    anna = maker.kit("anna", permission=Permission("operator"))
    both = [paths[1], str(anna)]
    ran = CliRunner().invoke(cli.submerge, ["nodes", "renew", *both, "--store", store])
    said = "certificates sent: 1\nnot sent: anna: nodes alone take theirs so, got a kit of role"
    assert (1, f"{said} operator\n") == (ran.exit_code, ran.output)

    wrong = [paths[1], str(fleet._folder / "pump.toml")]
    ran = CliRunner().invoke(cli.submerge, ["nodes", "renew", *wrong, "--store", store])
    assert (True, "") == (isinstance(ran.exception, UsageError), ran.output)

    for node, kit in kits.items():
        said = fleet._now[node].until("certificate renewed")
        assert str(kit) == said.facts["kit"]
        assert (before[node].key, read_kit(sent[node]).cert) == read_kit(kit)[1:3]
    fleet.feeds()
    fleet.start(PUMP)
    fleet.feeds()
    fleet.start(SITE)
    fleet.feeds()
    assert [] == fleet.refusals()


def test_a_site_with_a_new_store_above_it_is_refused_and_comes_back(fleet, tmp_path: Path):
    """As an old kit at a root that knows no names; the roster, once it is right, lets it in."""
    roster = fleet._folder / "roster.csv"
    roster.write_text("node,role,groups\nother,aggregator,\n")
    for node in ALL:
        fleet.renew(node, None)
        fleet.start(node, f'[listen]\nroster = "{roster}"\n' if node == ROOT else "")
    refused = fleet._now[SITE].until("join refused", reason="DENIED")
    assert "submerge pki issue NAME --role aggregator" in refused.facts["lines"][0]
    new = tmp_path / "new"
    new.write_text("node,role,groups\nsite,aggregator,\n")
    new.replace(roster)
    fleet.feeds()
