"""What an aggregator says to a question that came down the tree: its nodes, a page at a time, and
its settings.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from submerge import SubmergeError
from submerge.aggregator.node import AggregatorNode
from submerge.protocol.machine import Now
from submerge.protocol.messages import MOST_BODY, Question
from submerge_aggregator.questions import survey
from submerge_aggregator.questions.views import NodesPage, NodeView

Settings = Callable[[], bytes]
"""Returns the reply on what the program is configured with (`settings_reply`)."""


def no_settings() -> bytes:
    """Return nothing, for an aggregator that a program made without a configuration."""
    return b"{}"


def consulted(
    node: AggregatorNode, now: Now, question: Question, settings: Settings
) -> tuple[bytes, str]:
    """Return JSON, or why there is none, in one line."""
    me = node.settings.node
    if question.topic == "settings":
        return settings(), ""
    if question.topic != "nodes":
        return b"", f"{me} is an aggregator, and knows nothing of {question.topic}"
    try:
        return msgspec.json.encode(nodes_page(node, now, question)), ""
    except SubmergeError as error:
        return b"", f"{me}: {error}"


def nodes_page(node: AggregatorNode, now: Now, question: Question) -> NodesPage:
    """Return the nodes of a group that follow after a name, so many as a reply has room for."""
    about = question.about or None
    views = survey.nodes(node, now, question.group, about)
    shown, size = list[NodeView](), 200
    for view in sorted(views, key=lambda each: each.node):
        if view.node > question.after:
            size += len(msgspec.json.encode(view)) + 1
            if size > MOST_BODY:
                return NodesPage(node.settings.node, question.group, shown, more=True)
            shown.append(view)
    return NodesPage(node.settings.node, question.group, shown, more=False)
