"""A client, a site and a root as real programs, whose rows stand for an hour each.

So a client that is fed fifty rows a second lives through two days in one, and is armed within
seconds. Rows go round: what they come to is known after one round, and few alarms are false. Those
that are, where a kill took rows between two others, are held to the same: told once, ended once.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from submerge.errors import UsageError
from submerge_aggregator.questions.views import socket_of
from submerge_files.console.admin_client import AdminClient
from submerge_files.console.ways import NoAnswer, UnixSocket
from support.following import Event, following
from support.kills.configs import TIMING, Way
from support.kills.feeding import PACE_S
from support.patience import until
from support.programs import SUBMERGE, Program, Programs

PUMP, SITE, ROOT = "pump", "site", "root"
"""The client, and who is above it: it reports to the site, and the site to the root."""

ALL = (ROOT, SITE, PUMP)
GROUP = "pumps"
CHANNELS = [f"c{i}" for i in range(6)]
AILING = 4
"""The channel that a fault is in."""

SPELLS = np.array([2.2, 7.0, 2.6, 4.5, 3.1, 10.4, 3.7, 5.5])
"""How much more rows vary for a while, as squares: limits then are well above what is usual."""

SPELL, PAUSE = 10, 40
"""Rows of a spell, and between two: enough for an alarm to be over."""

STEEP, GROWTH, FAULT = 0.5, 1.005, 1e6
"""How much a fault adds with each row, where noise is 0.5; by how much it grows with each once that
is more; and what it adds at most. It comes gradually: the hour that it is raised in counts in the
limits, and few hours are known here. It never stays where it is: that would be a new level, which
ends an alarm whose rows are learnt."""

ONSET = 10
"""A fault begins in so many first rows of a pause: one that grows out of a spell, a little with
each row, may take the limits along, and is learnt."""

UNMISTAKABLE = 3.0
"""How far above its limit an alarm is that cannot be over before its fault is."""

GROWING, GROWN = 300.0, 60.0
"""Rows a second, before limits are known and after."""

RUNNER = (sys.executable, "-m", "support.failing")


class Feeder:
    """Feeds whichever process of a client there is; what a dead one had in its pipe is lost.

    Attributes
    ----------
    faulty : bool
        From now on.
    rows_per_s : float
    rows, faulty_rows : int
        Rows that were fed, and those of them in a fault.
    """

    def __init__(self) -> None:
        rng = np.random.default_rng(7)
        strong = np.repeat(np.sqrt([(1.0, square) for square in SPELLS]), (PAUSE, SPELL), axis=1)
        spread = 5 * rng.normal(size=(strong.size, 2)) @ rng.normal(size=(2, len(CHANNELS)))
        noise = 0.5 * rng.normal(size=spread.shape)
        self._rows = np.round(strong.reshape(-1, 1) * (spread + noise), 3)
        self.rows_per_s = GROWING
        self.faulty, self.rows, self.faulty_rows = False, 0, 0
        self._off = 0.0
        self.program: Program | None = None
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._feed, daemon=True)
        self._thread.start()

    @property
    def calm(self) -> int:
        """Rows that an alarm may take to be over after a fault, and those of a block."""
        return 5 * 8 + 64

    def stop(self) -> None:
        """Feed no more."""
        self._stopped.set()
        self._thread.join()

    def _feed(self) -> None:
        while not self._stopped.wait(PACE_S):
            program, faulty = self.program, self.faulty
            n = round(PACE_S * self.rows_per_s)
            rows = np.take(self._rows, range(self.rows, self.rows + n), axis=0, mode="wrap")
            for number, row in enumerate(rows, self.rows):
                begun = self._off > 0 or number % (PAUSE + SPELL) < ONSET
                grown = min(FAULT, max(self._off + STEEP, GROWTH * self._off))
                self._off = grown if faulty and begun else 0.0
                row[AILING] += self._off
            lines = "".join(f"{json.dumps(row)}\n" for row in rows.tolist())
            if program is not None and program.incarnations and program.write(lines.encode()):
                self.rows += n
                self.faulty_rows += n * faulty


class AlarmFleet:
    """The three, and a follower at the root; in the end all are gone, in every case.

    Parameters
    ----------
    way : Way
    max_withheld : str
        As in the client's `[learn]`.

    Attributes
    ----------
    feeder : Feeder

    Alarms by provisional limits are left out everywhere. They are listed and followed, but rows of
    the first days may raise them without a fault, and they are sent to nobody.
    """

    def __init__(self, way: Way, *, max_withheld: str = "1y") -> None:
        self._way, self._max_withheld = way, max_withheld
        self._programs = Programs()
        self._running: dict[str, Program] = {}
        self.feeder = Feeder()
        self._followed: list[Event] = []

    def __enter__(self) -> AlarmFleet:
        self._programs.__enter__()
        try:
            self._begin()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.feeder.stop()
        self._programs.__exit__()

    def _begin(self) -> None:
        self.start(*ALL)
        self.heard(ROOT)
        follower = self._programs.with_a(following(self.store(ROOT)))
        self._followed = follower.reported
        self.state_is("armed")
        # Whatever a kill takes from now on, the last checkpoint has enough blocks for the limits.
        self.learns(round(GROWING))
        self.feeder.rows_per_s = GROWN

    # -- programs ------------------------------------------------------------------

    def start(self, *nodes: str, dying: str = "") -> None:
        """Start a process of each; the client's dies at a failpoint, once that is armed."""
        for node in nodes:
            kind = "client" if node == PUMP else "aggregator"
            doomed = dying and node == PUMP
            command = (*RUNNER, dying, "1", "--") if doomed else (SUBMERGE,)
            config = self._programs.file(f"{node}.toml", self._config(node))
            program = self._programs.start(kind, "--config", config, command=command)
            self._running[node] = program
            if node == PUMP:
                self.feeder.program = program

    def kill(self, *nodes: str) -> None:
        """`kill -9`."""
        for node in nodes:
            program = self._running[node]
            assert program.incarnations, f"{node} died by itself; its log:\n{program.log}"
            program.kill()

    def killed(self, *nodes: str, dying: str = "") -> None:
        """`kill -9`, and start again; return when they do what they are there for."""
        self.kill(*nodes)
        self.start(*nodes, dying=dying)
        self.heard(*nodes)

    def heard(self, *nodes: str) -> None:
        """Wait until those that were started read, or answer."""
        for node in nodes:
            self._running[node].until("reading" if node == PUMP else "serving")
        for node in set(nodes) - {PUMP}:
            self.until(lambda node=node: self.ask(node) is not None, f"{node} to answer")

    def dies_as(self, *, faulty: bool) -> None:
        """Let a fault begin, or end, and the client die at its failpoint for that."""
        program = self._running[PUMP]
        program.until("reading")
        if faulty:
            # A chance alarm that is open by now would take the fault in, and tell no start of it.
            self.until(lambda: not self._has_open, "no alarm to be open")
        program.signal(signal.SIGUSR1)
        self.feeder.faulty = faulty
        self.until(lambda: not program.incarnations, "it to die where it should")
        program.ended()

    # -- what they say ---------------------------------------------------------------

    @property
    def lines(self) -> list[dict[str, Any]]:
        """What the client's file tells of alarms; all of its lines are whole."""
        return _lines(self._programs.folder / "pump.ndjson")

    @property
    def root_lines(self) -> list[dict[str, Any]]:
        """What the root's file tells."""
        return _lines(self._programs.folder / "root.ndjson")

    @property
    def followed(self) -> list[Event]:
        """What `submerge alarms --follow` at the root has told."""
        return [each for each in list(self._followed) if not each["provisional"]]

    def ask(self, node: str, /, *parts: str, **query: str) -> Any:
        """Return what an aggregator says at its door; None if it does not answer."""
        try:
            return json.loads(
                AdminClient(UnixSocket(socket_of(self.store(node)))).get(*parts, **query)
            )
        except (NoAnswer, UsageError):
            return None

    def alarms(self, node: str = ROOT) -> list[dict[str, Any]]:
        """Alarms that are told of at an aggregator, open ones first."""
        return [each for each in self.ask(node, "alarms") or () if not each["provisional"]]

    @property
    def client(self) -> dict[str, Any]:
        """What the site knows of the client; nothing while it does not answer."""
        return next(iter(self.ask(SITE, "nodes", node=PUMP) or ()), {})

    @property
    def learnt(self) -> int:
        """Readings that it has told the site it learnt, in all its lives."""
        return self._reported("learnt")

    @property
    def withheld(self) -> int:
        """Likewise, those that it did not learn."""
        return self._reported("withheld")

    @property
    def wanted(self) -> bool:
        """Whether the site knows of an order that the client has not heard."""
        alarms = self.alarms(SITE)
        return bool(self.client.get("wanted") or any(alarm["wanted"] for alarm in alarms))

    def order(self, *words: str) -> None:
        """Have an operator at the root say something, with a command."""
        command = [SUBMERGE, *words, "--store", self.store(ROOT)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert 0 == done.returncode, done.stderr

    # -- waiting -----------------------------------------------------------------------

    def until(self, happens: Callable[[], Any], what: str) -> None:
        """Wait; if it does not happen, say all that is known."""
        until(happens, lambda: f"{what}\n{self.known}", lambda: self.feeder.rows)

    def state_is(self, state: str) -> None:
        """Wait until the root hears that the client is in a state."""

        def is_it() -> bool:
            alarm_status = self.ask(ROOT, "alarm-status") or [{"watch": None}]
            watch = alarm_status[0]["watch"]
            return bool(watch and watch["states"][state])

        self.until(is_it, f"the root to hear of {state}")

    def fault_is_open(self) -> dict[str, Any]:
        """Wait until a fault is told of, by the client and at the root; return the alarm."""
        self.feeder.faulty = True

        found: list[dict[str, Any]] = []

        def known() -> bool:
            told = {line["id"] for line in self.lines if line["event"] == "start"}
            found[:] = [each for each in _unmistakable(self._open) if each["id"] in told]
            return bool(found)

        self.until(known, "a fault to be told of")
        return found[0]

    def learns(self, rows: int) -> None:
        """Wait until the client has learnt so many more."""
        least = self.learnt + rows
        self.until(lambda: self.learnt >= least, f"{least} rows to be learnt")

    def goes_on(self) -> None:
        """Wait until rows are withheld for the open alarm that were not when we came here."""
        before = self._withheld
        self.until(lambda: self._withheld > before, f"more than {before} rows to be withheld")

    def fault_is_over(self) -> None:
        """Wait until no alarm is open, and everybody has told the end of each."""
        self.feeder.faulty = False
        self.until(lambda: self.alarms() and not self._open, "the root to have none open")
        self.until(
            lambda: all(self.is_told("end", name) for name in self.names),
            "every alarm to be over, for everybody",
        )

    @property
    def faults(self) -> set[str]:
        """Those of the root's alarms that no kill's gap has raised."""
        return {alarm["id"] for alarm in _unmistakable(self.alarms())}

    @property
    def names(self) -> set[str]:
        """All alarms that anybody has told of."""
        return {line["id"] for line in self.lines + self.root_lines + self.followed}

    def has_ended(self, name: str) -> bool:
        """Whether the client's file tells the end of an alarm."""
        return ("end", name) in [(line["event"], line["id"]) for line in self.lines]

    @property
    def _has_open(self) -> bool:
        return any(line["event"] != "end" for line in self.lines[-1:])

    def is_told(self, event: str, name: str) -> bool:
        """Whether everybody who tells has told that of an alarm."""
        return all(
            (event, name) in [(each["event"], each["id"]) for each in reported]
            for reported in (self.lines, self.root_lines, self.followed)
        )

    def _reported(self, what: str) -> int:
        known = self.client
        return sum(each[what] for each in (*known.get("rows", ()), *known.get("sealed", ())))

    @property
    def _open(self) -> list[dict[str, Any]]:
        return [alarm for alarm in self.alarms() if alarm["open"]]

    @property
    def _withheld(self) -> int:
        return max((alarm["withheld"] for alarm in self._open), default=0)

    @property
    def known(self) -> str:
        """All that anybody may want to know where something is wrong."""
        logs = [f"-- {node}\n{_log(program)}" for node, program in self._running.items()]
        reported = (
            self.ask(ROOT, "alarms"),
            self.ask(ROOT, "alarm-status"),
            self.client,
            self.lines,
            self._followed,
            self.root_lines,
        )
        return "\n".join([*map(str, reported), f"{self.feeder.rows} rows", *logs])

    # -- configurations ------------------------------------------------------------------

    def store(self, node: str) -> Path:
        return self._programs.folder / f"{node}.db"

    def _config(self, node: str) -> str:
        if node == PUMP:
            return self._client
        above = f'[parent]\nname = "{ROOT}"\n{self._way.up(ROOT)}' if node == SITE else ""
        schema = "" if node == SITE else f"[groups.{GROUP}.schema]\nchannels = {CHANNELS}\n"
        alarms = f'[alarms]\nndjson = "{self._programs.folder}/root.ndjson"' if not above else ""
        return f"""
node = "{node}"
store = "{self.store(node)}"
log = "debug"
{self._way.listens(node)}
{above}
{alarms}
[status]
address = ""
[groups.{GROUP}.summary]
rank = 2
oversample = 2
{schema}
{TIMING}
model_every_s = 0.3
"""

    @property
    def _client(self) -> str:
        folder = self._programs.folder
        return f"""
node = "{PUMP}"
group = "{GROUP}"
parent = "{SITE}"
state = "{folder}/pump.state"
log = "debug"
[uplink]
{self._way.up(SITE)}
[sensor]
kind = "ndjson"
[scores]
to = "none"
[schema]
channels = {CHANNELS}
[summary]
rank = 2
oversample = 2
[alarms]
at_most = "0.5 false per month"
settle = "17d"
period_s = 3600
ndjson = "{folder}/pump.ndjson"
[learn]
max_withheld = "{self._max_withheld}"
{TIMING}
checkpoint_every_s = 0.5
min_rows = 1
"""


def _unmistakable(alarms: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [alarm for alarm in alarms if alarm["worst"] > UNMISTAKABLE]


def _log(program: Program) -> str:
    lines = [line for line in list(program.lines) if line.what != "acknowledged"]
    return "\n".join(f"{line.level:7} {line.what} {line.facts}" for line in lines)


def _lines(path: Path) -> list[dict[str, Any]]:
    text = path.read_text() if path.exists() else ""
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]
