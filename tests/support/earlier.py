"""Nodes of an earlier version in a fleet of narrow groups."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from submerge import PeerError
from submerge.protocol.machine import Effect, Event, Now, Publish, Received, Send
from submerge.protocol.messages import Joined, Message, Model, Report
from submerge_proto.wire import forms
from support.nodes import Host
from support.wired import WiredTable


class EarlierNode:
    """A node of the version before: it knows neither whole scatters nor energies of channels.

    Its messages have none of the new fields, and it skips those of messages that it hears. One
    that it cannot read is lost, as on a broker; `unreadable` collects why.
    """

    def __init__(self, node: Any, unreadable: list[str]) -> None:
        self._node, self._unreadable = node, unreadable

    def __getattr__(self, name: str) -> Any:
        return getattr(self._node, name)

    def step(self, event: Event, now: Now) -> list[Effect]:
        """Step the node; new fields are dropped on the way in and on the way out."""
        if isinstance(event, Received):
            try:
                event = replace(event, message=as_earlier(event.message))
            except PeerError as error:
                self._unreadable.append(str(error))
                return []
        return [_said(effect) for effect in self._node.step(event, now)]


def _said(effect: Effect) -> Effect:
    if isinstance(effect, Send | Publish):
        return effect._replace(message=as_earlier(effect.message))
    return effect


def as_earlier(message: Message) -> Message:
    """Return a message as a node of the version before reads or writes it."""
    if isinstance(message, Joined):
        return message._replace(whole_scatter=False)
    if not isinstance(message, Report | Model):
        return message
    is_report = isinstance(message, Report)
    form: Any = forms.report(message) if is_report else forms.MODEL.made(message)
    for name in ("subspace", "linear"):
        if form.HasField(name):
            getattr(form, name).ClearField("channel_energies")
            getattr(form, name).ClearField("whole")
    form.ClearField("trail" if is_report else "factors")
    read: Message = forms.report_of(form) if is_report else forms.MODEL.read(form)
    return read


class MixedTable(WiredTable):
    """A table of bytes, whose nodes in `earlier` are of the version before.

    Attributes
    ----------
    earlier : set of str
        Labels; a node that starts again starts as what it is then.
    unreadable : list of str
        Why such nodes could not read a message.
    """

    def __init__(self, earlier: set[str], *args: Any, **kwargs: Any) -> None:
        self.earlier, self.unreadable = earlier, list[str]()
        super().__init__(*args, **kwargs)

    def _seat(self, host: Host, *, start: bool = True) -> Host:
        label, make = host.label, host.make

        def made(rng: np.random.Generator) -> Any:
            node = make(rng)
            return EarlierNode(node, self.unreadable) if label in self.earlier else node

        host.make = made
        return super()._seat(host, start=start)
