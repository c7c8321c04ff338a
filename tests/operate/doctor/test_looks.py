"""What `submerge doctor` thinks of certificates, clocks, disks and memory."""

from __future__ import annotations

import socket
import ssl
import time
from contextlib import nullcontext

import pytest

from submerge.protocol.machine import Now
from submerge.protocol.permission import Permission
from submerge_client.config.links import UplinkConfig
from submerge_client.uplink.tls import Tls
from submerge_operate.doctor import links, machine
from submerge_operate.doctor.certificates import ShownCertificate, check_certificates
from support.certified import Certified

DAY = 86400.0


@pytest.fixture
def fleet(tmp_path_factory) -> Certified:
    return Certified(tmp_path_factory.mktemp("kits"))


def states(findings) -> list[str]:
    return [finding.state for finding in findings]


# Certificates


def kit_of(fleet, node="pump-1", *hosts, lasts_s=90 * DAY, permission=None):
    """Looks at a kit, as the uplink's, by a clock that may be moved."""
    path = fleet.kit(node, *hosts, lasts_s=lasts_s, permission=permission)
    path.chmod(0o600)

    def look(later_s=0.0, *, node="pump-1", serves=False):
        shown = ShownCertificate("uplink", "root.example", Tls(kit=path), serves=serves)
        return list(check_certificates([shown], node, time.time() + later_s))

    look.path = path
    return look


def test_a_kit_of_ones_own_says_how_long_it_holds(fleet):
    """The authority's own certificate, which holds as well, is not worth a line."""
    (found,) = kit_of(fleet, lasts_s=5 * DAY)()

    assert "ok" == found.state
    assert "pump-1.kit of pump-1: 5 d left, until 20" in found.message


def test_one_that_has_ended_fails(fleet):
    """Whatever else is right."""
    (found,) = kit_of(fleet, lasts_s=-60)()

    assert "fails" == found.state
    assert "ended on" in found.message
    assert "pki renew pump-1" in found.hint


def test_one_before_its_time_is_the_clock_s_fault(fleet):
    """As on a Pi that has just been started, without a network."""
    found = kit_of(fleet)(-400 * DAY)

    assert {"fails"} == set(states(found))
    assert "is valid only from" in found[0].message
    assert "clock" in found[0].hint


def test_the_last_quarter_of_its_life_is_a_warning(fleet):
    """The test's authority holds for nine days, and began a day ago."""
    look = kit_of(fleet, lasts_s=7 * DAY)

    assert ["ok"] == states(look(4 * DAY))
    assert "warning" == look(5.5 * DAY)[0].state


def test_the_authority_s_end_is_everybody_s(fleet):
    """It is told when it comes near."""
    said = [each.message for each in kit_of(fleet)(8.5 * DAY)]

    assert any("the authority's own certificate" in line for line in said)


def test_another_node_s_certificate_fails(fleet):
    """The parent would take no report; both ways out are named."""
    (found,) = kit_of(fleet, "pump-2")()

    assert "fails" == found.state
    assert 'copy the kit of pump-1 here, or set node = "pump-2"' == found.hint


def test_a_kit_that_others_can_read_is_a_warning(fleet):
    """They could be this node."""
    look = kit_of(fleet, lasts_s=5 * DAY)
    look.path.chmod(0o644)

    assert ["ok", "warning"] == states(look())
    assert f"chmod 600 {look.path}" == look()[1].hint


@pytest.mark.parametrize("damage", ["gone", "cut", "another's key"])
def test_a_kit_that_is_of_no_use_fails(fleet, damage):
    """In the words of who would read it."""
    look = kit_of(fleet)
    if damage == "gone":
        look.path.unlink()
    elif damage == "cut":
        look.path.write_bytes(look.path.read_bytes()[:900])
    else:
        own, other = (path.read_bytes() for path in (look.path, kit_of(fleet, "pump-2").path))
        begin = b"-----BEGIN CERT"
        look.path.write_bytes(own[: own.index(begin)] + other[other.index(begin) :])

    assert ["fails"] == states(look())


def test_a_parent_s_certificate_must_name_a_host(fleet):
    """Children look for the name in their url."""
    north = {"node": "north", "serves": True}

    assert ["ok", "fails"] == states(kit_of(fleet, "north", lasts_s=5 * DAY)(**north))
    assert ["ok"] == states(kit_of(fleet, "north", "north.example", lasts_s=5 * DAY)(**north))


def test_a_parent_s_certificate_must_be_an_aggregator_s(fleet):
    """Where it has a role, and then it needs no host: children ask for its own name."""
    north = {"node": "north", "serves": True}
    for role, states_of in (("aggregator", ["ok"]), ("reader", ["ok", "fails"])):
        look = kit_of(fleet, "north", lasts_s=5 * DAY, permission=Permission(role))

        assert states_of == states(look(**north))


def test_a_kit_on_several_links_is_looked_at_once(fleet):
    """What one of them needs of it is looked at all the same."""
    path = kit_of(fleet, "north", lasts_s=5 * DAY).path
    tls = Tls(kit=path)
    shown = [
        ShownCertificate("listen.grpc", "", tls, serves=True),
        ShownCertificate("parent", "root.example", tls),
    ]
    found = list(check_certificates(shown, "north", time.time()))

    assert ["ok", "fails"] == states(found)
    assert "names no host" in found[1].message
    assert found[1].hint.startswith("submerge pki renew north --host ")


@pytest.mark.parametrize(("given", "restarts"), [([], False), (["CREDENTIALS_DIRECTORY"], True)])
def test_a_kit_is_read_at_the_next_connection_but_for_a_unit_s_copy(fleet, given, restarts):
    """Of which only a restart makes another."""
    path = kit_of(fleet, lasts_s=-60).path
    environ = {name: str(path.parent) for name in given}
    shown = ShownCertificate("uplink", "root.example", Tls(kit=path))
    (found,) = check_certificates([shown], "pump-1", time.time(), environ=environ)

    assert restarts == ("restart the unit" in found.hint)
    assert restarts != ("read at the next connection" in found.hint)


@pytest.mark.parametrize("tls", [None, Tls()])
def test_a_kit_that_no_link_uses_is_a_warning(fleet, tls):
    """Somebody believes that it protects one; on this machine too."""
    path = fleet.kit("pump-1")
    first = next(
        check_certificates([ShownCertificate("uplink", "localhost", tls)], "pump-1", 0.0, kit=path)
    )

    assert ("warning", "kit pump-1.kit is used by no link") == (first.state, first.message)


def test_a_kit_that_a_link_uses_is_not_said_to_be_idle(fleet):
    """Nor is none."""
    path = fleet.kit("pump-1", lasts_s=5 * DAY)
    path.chmod(0o600)
    shown = [
        ShownCertificate("uplink", "root.example", Tls(kit=path)),
        ShownCertificate("scores", "localhost", None),
    ]

    assert ["ok", "ok"] == states(check_certificates(shown, "pump-1", time.time(), kit=path))


@pytest.mark.parametrize(("state", "host"), [("ok", "localhost"), ("warning", "192.0.2.7")])
def test_a_link_without_tls_is_a_warning_where_others_are(state, host):
    """Nobody sits between a machine and itself."""
    assert [state] == states(
        check_certificates([ShownCertificate("uplink", host, None)], "pump-1", 0.0)
    )


# The way to a parent


class Met:
    """Files, and what somebody says to who comes with them."""

    def __init__(self, *, refuses: Exception | None = None) -> None:
        self._refuses = refuses

    proves = False

    def context(self):
        return self

    def set_alpn_protocols(self, _: object) -> None:
        pass

    def wrap_socket(self, _: object, **__: object):
        if self._refuses is not None:
            raise self._refuses
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def selected_alpn_protocol(self) -> None:
        return None


@pytest.fixture
def end(monkeypatch):
    """Go to north.example, and return where and why it ends."""
    monkeypatch.setattr(socket, "create_connection", lambda *_, **__: nullcontext())

    def go(met: Met) -> links.Unreached:
        link = UplinkConfig(url="grpcs://north.example:8470")
        with pytest.raises(links.Unreached) as ended:
            links.connect(link, met, "north")
        return ended.value

    return go


def test_a_certificate_for_another_host_is_renewed_with_all_its_names(end):
    """`pki issue` would refuse, and --host replaces all that were there."""
    refused = ssl.SSLCertVerificationError("")
    refused.verify_message = "Hostname mismatch, certificate is not valid for 'north.example'."
    hint = end(Met(refuses=refused)).hint

    assert "submerge pki renew north --host north.example" in hint
    assert "replace the old ones" in hint


def test_what_has_tls_and_is_no_grpc_may_be_a_broker(end):
    """gRPC itself would speak of ALPN."""
    refused = ssl.SSLError()
    refused.reason = "TLSV1_ALERT_NO_APPLICATION_PROTOCOL"

    assert "is that an MQTT broker?" in end(Met()).hint
    assert "is that an MQTT broker?" in end(Met(refuses=refused)).hint


@pytest.mark.parametrize(("lasts_s", "points_up"), [(-60, True), (3600, False)])
def test_who_shows_an_ended_certificate_need_not_ask_who_refused_it(fleet, lasts_s, points_up):
    """The finding of the certificate says what to do; without one it may be banned."""
    tls = Tls(kit=fleet.kit("pump-1", lasts_s=lasts_s))
    error = links.TurnedAway("UNAVAILABLE", "is it banned?")
    hint = links._hint(error, tls, "pump-1", time.time())

    assert ("see certificate above" if points_up else "is it banned?") == hint


def test_a_port_where_nobody_listens_has_nothing_to_do_with_a_certificate(fleet):
    """However long that has ended."""
    tls = Tls(kit=fleet.kit("pump-1", lasts_s=-60))
    error = links.Unreached("nobody listens", "is it running?")

    assert "is it running?" == links._hint(error, tls, "pump-1", time.time())


# The machine


def test_a_clock_that_nobody_vouches_for_is_a_warning():
    """It measures all the same."""
    now = Now(0.0, time.time(), False)

    assert ["warning"] == states(machine.clock(now))
    assert ["ok"] == states(machine.clock(now._replace(synced=True)))


def test_a_clock_before_the_program_itself_fails():
    """A board without a clock begins in 1970, and no certificate holds then."""
    assert ["fails"] == states(machine.clock(Now(0.0, 1000.0, True)))


def test_a_write_that_takes_long_is_a_warning(tmp_path):
    """As on a card at the end of its life."""
    ticks = iter([0.0, 3.0])
    (found,) = machine.disk("state", tmp_path / "s", steady=lambda: next(ticks))

    assert ("warning", True) == (found.state, "a write took 3 s" in found.message)


def test_a_disk_without_room_fails(tmp_path):
    """For what it may yet need."""
    assert ["fails"] == states(machine.disk("store", tmp_path / "s", spare=1 << 60))


@pytest.fixture
def proc(tmp_path):
    """A /proc in which 100 MiB are free."""
    folder = tmp_path / "proc"
    folder.joinpath("self").mkdir(parents=True)
    folder.joinpath("meminfo").write_text("MemTotal: 999999 kB\nMemAvailable: 102400 kB\n")
    folder.joinpath("self/cgroup").write_text("0::/system.slice/a.service\n")
    return folder


@pytest.mark.parametrize(("mib", "state"), [(40, "ok"), (60, "warning"), (120, "fails")])
def test_memory_is_what_the_machine_has_free(mib, state, proc, tmp_path):
    """Half of it is plenty, more than it too much."""
    assert [state] == states(machine.memory(mib << 20, proc=proc, cgroups=tmp_path / "none"))


@pytest.mark.parametrize(
    ("line", "file"),
    [
        ("0::/system.slice/a.service", "system.slice/a.service/memory.max"),
        ("0::/system.slice/a.service", "system.slice/memory.max"),
        ("0::/system.slice/a.service", "memory.max"),
        ("4:memory:/docker/abc", "memory/memory.limit_in_bytes"),
        ("4:cpu,memory:/docker/abc", "memory/docker/abc/memory.limit_in_bytes"),
    ],
)
def test_what_a_service_is_allowed_counts_where_it_is_less(line, file, proc, tmp_path):
    """Its own limit, or that of what it is part of, in either kind of cgroup."""
    proc.joinpath("self/cgroup").write_text(f"1:pids:/else\n{line}\n")
    limit = tmp_path / "cgroup" / file
    limit.parent.mkdir(parents=True)
    limit.write_text(f"{30 << 20}\n")
    (found,) = machine.memory(40 << 20, proc=proc, cgroups=tmp_path / "cgroup")

    assert ("fails", True) == (found.state, "30 MiB allowed here" in found.message)


def test_no_limit_is_no_limit(proc, tmp_path):
    """As cgroups say it."""
    limit = tmp_path / "memory.max"
    limit.write_text("max\n")

    assert ["ok"] == states(machine.memory(40 << 20, proc=proc, cgroups=tmp_path))
