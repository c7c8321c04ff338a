"""One file makes a device: what a configuration takes from a kit, and what goes before it."""

from __future__ import annotations

from pathlib import Path

import pytest

from submerge import UsageError
from submerge_aggregator import config as aggregator
from submerge_aggregator.assembly import server_of
from submerge_client import assembly
from submerge_client.config import client_config as client
from submerge_client.config.links import UplinkConfig
from submerge_client.uplink.tls import Tls, tls_of
from support.certified import Certified

CLIENT = """
group = "pumps"
parent = "root"
state = "pump.state"
kit = "pump-3.kit"
[uplink]
url = "grpcs://parent"
[schema]
channels = ["a", "b"]
[summary]
rank = 1
[sensor]
kind = "ndjson"
"""
ROOT = """
store = "root.db"
kit = "root.kit"
[listen.grpc]
address = "127.0.0.1:0"
[groups.pumps.schema]
channels = ["a", "b"]
[groups.pumps.summary]
rank = 1
"""


@pytest.fixture(scope="module")
def kits(tmp_path_factory) -> Certified:
    fleet = Certified(tmp_path_factory.mktemp("kits"))
    fleet.kit("pump-3")
    fleet.kit("root", "127.0.0.1")
    return fleet


@pytest.fixture(autouse=True)
def place(kits, tmp_path, monkeypatch) -> None:
    """A folder with kits, and to write a configuration in."""
    for path in kits.folder.glob("*.kit"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    monkeypatch.chdir(tmp_path)


def load(text: str, **environ: str) -> client.ClientConfig:
    Path("client.toml").write_text(text)
    return client.load("client.toml", environ)


def test_a_node_is_called_as_its_kit_says():
    """So all devices may have one configuration."""
    Path("root.toml").write_text(ROOT)

    assert "pump-3" == load(CLIENT).node
    assert "root" == aggregator.load("root.toml", {}).node


def test_the_environment_may_name_the_kit():
    """As a systemd unit does, which alone knows where its credentials are."""
    Path("creds").mkdir()
    Path("pump-3.kit").rename("creds/kit")

    assert "pump-3" == load(CLIENT, SUBMERGE__KIT="creds/kit").node


def test_a_kit_that_protects_nothing_is_named(caplog):
    """Somebody believes that it does: a sample with only that line taken in."""
    open_ = load(CLIENT.replace('"grpcs://parent"', '"grpc://parent"\ninsecure = true'))
    Path("root.toml").write_text(ROOT.replace('"127.0.0.1:0"', '"127.0.0.1:0"\ninsecure = true'))

    assert not open_.takes_kit
    assert not aggregator.load("root.toml", {}).takes_kit
    assert load(CLIENT).takes_kit
    assembly.warn_of_insecure({}, idle=open_.kit)
    assert ["the kit is used by no link"] == caplog.messages


def test_a_name_that_is_said_goes_first_and_must_be_the_certificates():
    """Two kits mixed up are found before anything is sent."""
    config = load(f'node = "pump-4"\n{CLIENT}')

    assert "pump-4" == config.node
    with pytest.raises(UsageError, match="expected the certificate of pump-4, got that of pump-3"):
        assembly.build_agent(config)


def test_a_kit_that_is_not_there_is_one_line():
    """With the file's name."""
    with pytest.raises(UsageError, match=r"expected a kit to read, got lost.kit: No such file"):
        load(CLIENT.replace("pump-3.kit", "lost.kit"))


def test_a_link_that_names_files_is_of_another_authority():
    """The kit is for all others."""
    kit, ca = Path("a.kit"), Path("ca.pem")

    assert Tls(kit=kit) == tls_of(UplinkConfig(url="grpcs://x"), kit)
    assert Tls(ca) == tls_of(UplinkConfig(url="grpcs://x", ca=ca), kit)
    assert tls_of(UplinkConfig(url="grpc://x", insecure=True), kit) is None


def test_who_listens_over_grpc_needs_a_kit_a_certificate_or_courage():
    """Nothing is open by default."""
    Path("root.toml").write_text('node = "root"' + ROOT.replace('kit = "root.kit"', ""))

    with pytest.raises(UsageError, match=r"listen.grpc.cert: expected a certificate .* or a kit"):
        aggregator.load("root.toml", {})


def test_what_nothing_protects_is_said_in_the_log(caplog):
    """It was allowed, perhaps long ago; between programs of one machine there is no network."""
    open_ = CLIENT.replace('"grpcs://parent"', '"grpc://parent"\ninsecure = true')

    assembly.warn_of_insecure({"uplink": load(open_).uplink})
    assembly.warn_of_insecure({"uplink": load(CLIENT).uplink})
    for here in ("localhost", "127.0.0.1", "[::1]"):
        assembly.warn_of_insecure({"uplink": UplinkConfig(url=f"grpc://{here}", insecure=True)})

    assert ["no TLS: others can read and forge this link"] == caplog.messages


@pytest.mark.parametrize(("more", "said"), [("", 1), ('ca = "root.kit"\n', 0), (None, 0)])
def test_an_aggregator_that_asks_for_no_certificate_says_so(more, said, caplog):
    """With a certificate of its own alone it believes any name, over TLS or not."""
    own = "" if more is None else f'cert = "root.kit"\nkey = "root.kit"\n{more}'
    Path("root.toml").write_text(ROOT.replace("[listen.grpc]\n", f"[listen.grpc]\n{own}"))

    server = server_of(aggregator.load("root.toml", {}))
    server.worker.close()

    assert said == caplog.messages.count("any child may speak for any other")


def test_a_word_of_topics_names_no_parent():
    """A node of such a name is from before `submerge pki issue` refused it, and goes on."""
    with pytest.raises(UsageError, match=r'and no word of MQTT topics, as `score` is, got "alarm"'):
        load(CLIENT, SUBMERGE__PARENT="alarm")
