"""The books of a demo that goes on: fed = counted + under way + declared lost.

The terms come from different places, so that the line may be wrong:

* *fed* is counted where rows are written to clients;
* *counted* is what the root says that it holds, asked through its admin API;
* *declared lost* is what the root holds as lost, and what went with processes that died: rows that
  a process was given, less what its aggregator holds of it once the next process is at work;
* *under way* is the rest of each client's rows by that client's own words (it logs how many of its
  readings its parent holds), and what an aggregator holds and the root does not yet.

A client's words and its aggregator's count are of different moments. They are compared report by
report: both name the incarnation and the number of the report. Besides, no count may be impossible:

* an aggregator holds no less than it has acknowledged, and never less than before;
* a client is counted no more often than it was fed;
* the root holds no more than its aggregators, and never less than before;
* what went with a process that was killed had not been acknowledged, and a process that was asked
  to end takes nothing along but what its own last line says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from submerge_lab.demo.page.fed_process import FedProcess
from submerge_lab.demo.page.held_counts import Answers, HeldNode, HeldRow

SETTLED = 3
"""Rounds in which a client's next process reports until what the one before took along counts as
lost: what that one kept is sent by then, as a rule."""

LATE = 20
"""Rounds until it is wrong that more is gone than may be."""

Fed = Mapping[str, Sequence[FedProcess]]
"""All processes of each client, in their order."""

NOTHING = HeldNode("")


@dataclass(slots=True)
class Line:
    """The line, and what it is made of.

    in_clients, in_aggregators, open : Under way: not with an aggregator; with an aggregator and not
        with the root (below 0 while an aggregator cannot say what it has passed on); of processes
        that have ended, until the next one is at work and their fate is known.
    lost_at_root, gone : Declared lost: by clients; with processes that died.
    compared : Clients whose own words were compared with their aggregator's count of the same
        report.
    wrong : What is impossible, a sentence each.
    """

    fed: int = 0
    counted: int = 0
    in_clients: int = 0
    in_aggregators: int = 0
    open: int = 0
    lost_at_root: int = 0
    gone: int = 0
    compared: int = 0
    wrong: list[str] = field(default_factory=list)

    @property
    def under_way(self) -> int:
        """Readings that are on their way."""
        return self.in_clients + self.in_aggregators + self.open

    @property
    def lost(self) -> int:
        """Readings that are declared lost."""
        return self.lost_at_root + self.gone

    @property
    def off(self) -> int:
        """By how much the line is wrong."""
        return self.fed - self.counted - self.under_way - self.lost

    @property
    def holds(self) -> bool:
        """Whether it adds up, and nothing is impossible."""
        return not self.off and not self.wrong


@dataclass(slots=True)
class ClientPast:
    """What a client's processes that have ended took along.

    processes : how many there are
    rounds : for how many rounds the next one has reported
    gone : readings of theirs that are declared lost
    """

    processes: int = 0
    rounds: int = 0
    gone: int = 0


class Books:
    """Compares what was fed with what is held, round by round.

    parents : Each client's aggregator.
    root : The root's name.

    line : Of the newest round; None before the root has answered.
    """

    def __init__(self, parents: Mapping[str, str], root: str) -> None:
        self.line: Line | None = None
        self._parents, self._root = dict(parents), root
        self._held: dict[str, dict[str, HeldNode]] = {}
        self._acknowledged: dict[str, int] = {}
        self._past: dict[str, ClientPast] = {}

    def begin(self, fed: Fed) -> None:
        """Note what is acknowledged to clients before a round of questions."""
        self._acknowledged = {
            node: sum(process.claimed for process in processes) for node, processes in fed.items()
        }

    def end(self, fed: Fed, answers: Answers) -> None:
        """Take the answers to a round; an aggregator that is down has its last answer again."""
        line = Line()
        for name, held in answers.items():
            if held is not None:
                self._compare(line, name, held)
        for node, processes in fed.items():
            line.fed += sum(process.given for process in processes)
            parent = self._parents[node]
            self._add_client(line, node, processes, self._held.get(parent, {}).get(node, NOTHING))
        root = self._held.get(self._root)
        if root is None:
            return
        for name in dict.fromkeys(self._parents.values()):
            here, above = self._held.get(name, {}).values(), root.get(name, NOTHING)
            passed, held_here = above.readings + above.lost, sum(n.readings + n.lost for n in here)
            line.counted += above.readings
            line.lost_at_root += above.lost
            line.in_aggregators += held_here - passed
            if answers.get(name) is not None and passed > held_here:
                line.wrong.append(f"the root holds {passed} of {name}, which holds {held_here}")
        self.line = line

    def _compare(self, line: Line, name: str, held: dict[str, HeldNode]) -> None:
        """Take an aggregator's answer, and compare it with its last one, and with its words."""
        for node, before in self._held.get(name, {}).items():
            now = held.get(node, NOTHING).readings
            if now < before.readings:
                line.wrong.append(f"{name} held {before.readings} of {node}, and holds {now} now")
        self._held[name] = held
        for node, acknowledged in self._acknowledged.items():
            here = held.get(node, NOTHING)
            if self._parents[node] == name and here.readings + here.lost < acknowledged:
                line.wrong.append(
                    f"{name} acknowledged {acknowledged} of {node}, and holds {here.readings}"
                )

    def _add_client(
        self, line: Line, node: str, processes: Sequence[FedProcess], held: HeldNode
    ) -> None:
        """Add one client to the line."""
        newest = processes[-1]
        past = processes if newest.ended else processes[:-1]
        over = {name for process in past for name in process.incarnations}
        rows = [] if newest.ended else [row for row in held.rows if row.incarnation not in over]
        counted = sum(row.readings for row in rows)
        if not newest.ended:
            line.in_clients += newest.given - self._claimed(line, newest, rows)
            if counted > newest.given:
                line.wrong.append(
                    f"{node} was given {newest.given} rows, and {counted} are counted"
                )
        before = self._past.get(node, ClientPast())
        rounds = before.rounds + 1 if rows and before.processes == len(past) else 0
        self._past[node] = ClientPast(len(past), rounds, before.gone)
        self._add_past(line, node, past, held.readings - counted + held.lost)

    def _claimed(self, line: Line, process: FedProcess, rows: Sequence[HeldRow]) -> int:
        """Return what is held by a process's own words, of the reports that its aggregator has."""
        claimed, compared = 0, bool(rows)
        for row in rows:
            words = process.claims.get(row.incarnation, {}).get(row.seq)
            compared &= words is not None
            claimed += row.readings if words is None else words - row.lost
            if words is not None and words != row.generated:
                line.wrong.append(
                    f"{process.node} says that {words} readings of its report {row.seq} are held,"
                    f" its aggregator {row.generated}"
                )
        line.compared += compared
        return claimed

    def _add_past(self, line: Line, node: str, processes: Sequence[FedProcess], held: int) -> None:
        """Add a client's processes that have ended.

        held : readings of theirs that are counted, or declared as lost
        """
        past, gone = self._past[node], sum(process.given for process in processes) - held
        most = sum(
            each.given - each.claimed if each.killed else each.unread + each.not_kept
            for each in processes
        )
        if gone < 0:
            line.wrong.append(f"{-gone} readings of {node} are counted twice")
        elif gone > most and past.rounds >= LATE:
            line.wrong.append(f"{gone} readings of {node} are gone, and {most} may be")
        if past.rounds >= SETTLED and gone <= most:
            past.gone = gone
        past.gone = min(past.gone, gone)
        line.gone += past.gone
        line.open += gone - past.gone
