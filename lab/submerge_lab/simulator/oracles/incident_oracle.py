"""IncidentOracle: whether people hear of each incident once, and of its end once (I13)."""

from __future__ import annotations

from collections import Counter

from submerge.aggregator.alarms.incidents import AlarmRates
from submerge.aggregator.node import AggregatorNode
from submerge.protocol.alarm_changes import AlarmEvent
from submerge.protocol.alarm_status import Alarm
from submerge_aggregator.notify.notifier import REPORTS, AlarmNews, Subtree
from submerge_client.alarms.journal import Delivered, undelivered
from submerge_lab.simulator.fleet import SimulatedFleet
from submerge_lab.simulator.hosts import Host
from submerge_lab.simulator.nodes import GROUP
from submerge_lab.simulator.observer import FleetObserver

# Two sinks hear what the root's notifier says, and have journals that outlive the root's process.
# One delivers at once, one a single message at each seventh write.
SLOW = 7
# Alarms that came do not raise the rate here: a few of any fleet are an incident.
DAY_S = 86400.0


class TellingSink:
    """What one sink has delivered, and how often it has told of each alarm and incident."""

    def __init__(self) -> None:
        self.delivered: Delivered | None = None
        self.starts, self.ends = Counter[str](), Counter[str]()
        self.incidents = 0

    def due(self, state: tuple[Alarm, ...]) -> list[AlarmEvent]:
        """Return what is to be told of a state; the first is what a new sink begins with."""
        self.delivered = self.delivered or Delivered.since(state)
        return undelivered(self.delivered, state)

    def tell(self, event: AlarmEvent) -> str:
        """Deliver a message; return what is wrong with it, "" if nothing."""
        kind, alarm, name = event.kind, event.alarm, event.alarm.name
        counts = self.starts if kind == "start" else self.ends
        counts[name] += 1
        self.incidents += bool(alarm.parts) and kind == "start"
        self.delivered = (self.delivered or Delivered()).after(event)
        if counts[name] > 1 or self.ends[name] > self.starts[name]:
            return f"{kind} {counts[name]} of {name} is told, and {self.starts[name]} of its start"
        parts = Counter(part.name for each in self.delivered.open for part in each.parts)
        if parts and max(parts.values()) > 1:
            return f"{parts.most_common(1)[0][0]} is a part of an incident twice, or of two"
        if kind == "start" and not alarm.parts and parts[name]:
            return f"{name} is told beside the incident that it is a part of"
        return ""

    def wrong_at_rest(self, state: tuple[Alarm, ...]) -> str:
        """Return what people do not know, "" if nothing; all that is due has been told."""
        delivered, open_ = self.delivered or Delivered(), {e.name for e in state if e.is_open}
        wholes = [{part.name for part in each.parts} for each in state if each.parts]
        for each in delivered.open:
            parts = {part.name for part in each.parts} or {each.name}
            # It may have grown since it was told.
            grown = parts.union(*(whole for whole in wholes if parts & whole and each.parts))
            if open_.isdisjoint(grown):
                return f"{each.name} is open for people, and over"
        # An incident of which all parts are told keeps the name that it began under.
        untold = open_ - {each.name for each in state if each.parts} - {*delivered.over}
        untold = untold.difference(self.starts, *wholes)
        return f"nobody has heard of {min(untold)}" if untold else ""


class IncidentOracle(FleetObserver):
    """Follows what people hear of a fleet."""

    def __init__(self, fleet: SimulatedFleet) -> None:
        self._fleet, self.violations = fleet, list[tuple[str, str]]()
        self.sinks = TellingSink(), TellingSink()
        self._rates = AlarmRates(fleet.plan.nodes, 1 / DAY_S, 0, fleet.plan.nodes * DAY_S)
        self._news, self._writes, self._process = AlarmNews(), 0, -1

    def on_write(self, host: Host) -> None:
        """Tell what the root knows now."""
        if host is not self._fleet.root:
            return
        state, (prompt, late) = self._state(host), self.sinks
        self._writes += 1
        for event in prompt.due(state):
            self._record(prompt.tell(event))
        for event in late.due(state)[:1] if self._writes % SLOW == 0 else ():
            self._record(late.tell(event))

    def _state(self, root: Host) -> tuple[Alarm, ...]:
        """Return the alarms and incidents of the root, as its notifier has them."""
        if self._process != root.process:
            begun = [each for sink in self.sinks for each in (sink.delivered or Delivered()).open]
            patience_s = REPORTS * self._fleet.plan.report_every_s
            self._process, self._subtree = root.process, Subtree(begun, patience_s)
        now = root.now(self._fleet.time)
        if isinstance(root.node, AggregatorNode) and root.node.ledger(GROUP) is not None:
            news = self._news.alarms_of(root.node, now, GROUP)
            self._subtree.hear(news.alarms, whole=news.whole, rates=self._rates)
        return self._subtree.state(now.steady, now.wall)

    def conclude(self) -> list[tuple[str, str]]:
        """Let the slow sink tell the rest; return all violations."""
        state = self._state(self._fleet.root)
        for sink in self.sinks:
            while (events := sink.due(state)) and not self.violations:
                self._record(sink.tell(events[0]))
            self._record(sink.wrong_at_rest(state))
        return self.violations

    def _record(self, what: str) -> None:
        if what and not self.violations:
            self._fleet.log(self._fleet.root, f"!! I13: {what}")
            self.violations.append(("I13", f"at {self._fleet.time:.0f} s: {what}"))
