"""A fleet whose certificates live ten minutes, for an hour: is a reading lost?

A root, an aggregator that listens over gRPC and one that listens through Mosquitto, two clients
under each, every one a real process; every link is mutual TLS, and every node, the broker too,
has a kit from `submerge pki`. `submerge pki renew --all` replaces all kits four times in their
life, and nobody is told, but the broker (SIGHUP). In turn an aggregator, the broker and a client
are stopped and started again, so that each has to prove with a renewed certificate who it is;
connections that hold outlive the certificate that they began with.

`python benchmarks/certificates.py --minutes 60 --lasts 600` prints what happened as it does, and
exits 1 unless the root counts exactly the readings that the clients' sensors handed over.
"""

import itertools
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.broker import Mosquitto
from support.programs import SUBMERGE, Program, Programs, free_port, until

GROUP = "g"
CHANNELS = [f"c{i}" for i in range(8)]
RATE = 5.0
SCHEMA = f"""
[groups.{GROUP}.summary]
rank = 3
"""
ROOT_SCHEMA = f"{SCHEMA}[groups.{GROUP}.schema]\nchannels = {json.dumps(CHANNELS)}\n"
TIMING = "[timing]\nreport_every_s = 5\n"
CLIENTS = {"pump-1": "north", "pump-2": "north", "pump-3": "south", "pump-4": "south"}
ACL = "pattern readwrite submerge/v1/+/%u/#\npattern write submerge/v1/+/+/up/%u/#\n" + "".join(
    f"pattern read submerge/v1/+/+/{what}\n" for what in ("down/%u/#", "hello", "model/+")
)


class Fleet:
    """Six nodes and a broker, and what the clients have read."""

    def __init__(self, programs: Programs, lasts_s: int) -> None:
        self.programs, self.folder, self.lasts_s = programs, programs.folder, lasts_s
        self.ports = {name: free_port() for name in ("root", "north")}
        self.pki("init", "--fleet", "hour")
        serves = "--host", "127.0.0.1"
        self.pki("issue", "root", "north", "south", "broker", *serves, *self.lasting)
        self.pki("issue", *CLIENTS, *self.lasting)
        self.broker = Mosquitto(self.folder)
        self.running: dict[str, Program] = {}
        self.feeding = {name: threading.Event() for name in CLIENTS}
        self.ended: list[dict[str, int]] = []
        self.restarts = 0

    @property
    def lasting(self) -> tuple[str, str]:
        """How long each kit is to hold."""
        return "--lasts", f"{self.lasts_s}s"

    def pki(self, *args: str) -> None:
        """Run `submerge pki` on the fleet's own directory."""
        command = [SUBMERGE, "pki", *args, "--dir", self.folder / "pki"]
        subprocess.run(command, check=True, capture_output=True)  # noqa: S603 (our own)

    def kit(self, node: str) -> str:
        """A kit's path, as TOML."""
        return json.dumps(str(self.folder / "pki" / "kits" / f"{node}.kit"))

    def renew(self) -> None:
        """Replace every kit; tell the broker alone."""
        self.pki("renew", "--all", *self.lasting)
        self.broker.reload()

    def start_broker(self) -> None:
        """Start Mosquitto, which knows nodes by their certificates."""
        kit = json.loads(self.kit("broker"))
        (self.folder / "acl").write_text(ACL)
        self.broker.start(
            *(f"{name} {kit}" for name in ("cafile", "certfile", "keyfile")),
            "require_certificate true",
            "use_identity_as_username true",
            f"acl_file {self.folder / 'acl'}",
        )

    def start(self, node: str) -> None:
        """Start a node; feed it, if it is a client."""
        kind = "client" if node in CLIENTS else "aggregator"
        config = self.programs.file(f"{node}.toml", self.config(node))
        program = self.running[node] = self.programs.start(kind, "--config", config)
        if kind == "aggregator":
            program.until("serving")
        else:
            program.until("reading")
            self.feeding[node] = threading.Event()
            threading.Thread(target=feed, args=(program, self.feeding[node]), daemon=True).start()

    def stop(self, node: str) -> None:
        """End a node, and keep what a client says it has read."""
        program = self.running[node]
        if node in CLIENTS:
            self.feeding[node].set()
        status = program.end()
        if status:
            raise SystemExit(f"{node} ended with {status}:\n{program.log}")
        if node in CLIENTS:
            self.ended.append(program.said("ended")[-1].facts)

    def config(self, node: str) -> str:
        """A configuration."""
        text = f"kit = {self.kit(node)}\n"
        if node in CLIENTS:
            parent = CLIENTS[node]
            return text + (
                f'group = "{GROUP}"\nparent = "{parent}"\nstate = "{self.folder / node}.state"\n'
                f"[uplink]\nurl = {self.url(parent)}\n{TIMING}min_rows = 5\n[summary]\nrank = 3\n"
                f'[schema]\nchannels = {json.dumps(CHANNELS)}\n[sensor]\nkind = "ndjson"\n'
            )
        text += f'store = "{self.folder / node}.db"\n[status]\naddress = ""\n'
        text += TIMING + "model_every_s = 5\n"
        if node == "south":
            text += f"[listen.mqtt]\nurl = {self.url(node)}\n"
        else:
            text += f'[listen.grpc]\naddress = "127.0.0.1:{self.ports[node]}"\n'
        if node == "root":
            return text + ROOT_SCHEMA
        return text + f'[parent]\nname = "root"\nurl = {self.url("root")}\n{SCHEMA}'

    def url(self, node: str) -> str:
        """Where the children of a node reach it."""
        if node == "south":
            return f'"mqtts://127.0.0.1:{self.broker.port}"'
        return f'"grpcs://127.0.0.1:{self.ports[node]}"'

    @property
    def counted(self) -> int:
        """What the root's rows count."""
        config = self.folder / "root.toml"
        command = [SUBMERGE, "nodes", "list", "--config", config, "--json"]
        reported = subprocess.run(command, check=True, capture_output=True).stdout  # noqa: S603
        return sum(
            part["learnt"]
            for node in json.loads(reported)
            for part in node["rows"] + node["sealed"]
        )

    def restart(self, what: str) -> None:
        """Stop something and start it again."""
        self.restarts += 1
        if what == "broker":
            self.broker.stop()
            self.start_broker()
            return
        self.stop(what)
        self.start(what)


class Closing:
    """A broker that is stopped in the end."""

    def __init__(self, broker: Mosquitto) -> None:
        self._broker = broker

    def __enter__(self) -> Mosquitto:
        return self._broker

    def __exit__(self, *_: object) -> None:
        self._broker.stop()


def feed(program: Program, enough: threading.Event) -> None:
    """Readings of one client, until it is enough."""
    for i in itertools.count():
        reading = {name: (i * 7919 + 31 * j) % 97 / 97 for j, name in enumerate(CHANNELS)}
        if enough.wait(1 / RATE) or not program.write(json.dumps(reading).encode() + b"\n"):
            return


def turns() -> Iterator[str]:
    return itertools.cycle(("north", "pump-1", "broker", "south", "pump-3", "root"))


@click.command(help=__doc__)
@click.option("--minutes", default=60.0)
@click.option("--lasts", default=600, help="Seconds that a certificate lives.")
def main(minutes: float, lasts: int) -> None:
    began = time.monotonic()

    def tell(what: str) -> None:
        click.echo(f"{time.monotonic() - began:7.1f} s  {what}")

    with Programs() as programs:
        fleet = Fleet(programs, lasts)
        programs.with_a(Closing(fleet.broker))
        fleet.start_broker()
        for node in ("root", "north", "south", *CLIENTS):
            fleet.start(node)
        renewals, nexts = 0, turns()
        renew_at = restart_at = began
        while time.monotonic() < began + 60 * minutes:
            now = time.monotonic()
            if now >= renew_at + lasts / 4:
                renew_at, renewals = now, renewals + 1
                fleet.renew()
                tell(f"renewed all, {renewals} times so far")
            if now >= restart_at + lasts / 6:
                restart_at, what = now, next(nexts)
                fleet.restart(what)
                tell(f"{what} stopped and started; the root counts {fleet.counted:,} readings")
            time.sleep(0.2)
        for node in CLIENTS:
            fleet.stop(node)
        fed, lost, unreported = (
            sum(facts[name] for facts in fleet.ended) for name in ("rows", "lost", "unreported")
        )
        until(lambda: fleet.counted >= fed, lambda: f"{fed} at the root", lambda: fleet.counted)
        counted = fleet.counted
        reported = {"minutes": minutes, "lasts_s": lasts, "renewals": renewals}
        reported |= {"restarts": fleet.restarts, "incarnations": len(fleet.ended), "fed": fed}
        reported |= {"counted": counted, "lost": lost, "unreported_at_an_end": unreported}
        click.echo(json.dumps(reported))
        sys.exit(counted != fed or lost != 0)


if __name__ == "__main__":
    main()
