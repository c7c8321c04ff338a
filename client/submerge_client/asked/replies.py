"""ClientReplies: what a client says to a question, as JSON."""

from __future__ import annotations

from collections.abc import Callable

from submerge.client.node import ClientNode
from submerge.protocol.machine import Now
from submerge.protocol.questions import Question
from submerge_client.asked.shown_settings import settings_reply
from submerge_client.config.client_config import ClientConfig

Replies = Callable[[ClientNode, Question, Now], tuple[bytes, str]]
"""Returns JSON, or why there is none, in one line."""


class ClientReplies:
    """Says what a client's configuration allows.

    Parameters
    ----------
    config : ClientConfig
    """

    def __init__(self, config: ClientConfig) -> None:
        self._config = config

    def __call__(self, node: ClientNode, question: Question, now: Now) -> tuple[bytes, str]:
        """Return JSON, or why there is none, in one line."""
        if question.topic == "settings":
            return settings_reply(self._config.node, "client", self._config), ""
        return b"", f"{self._config.node} knows nothing of {question.topic}"


def no_replies(node: ClientNode, *_: object) -> tuple[bytes, str]:
    """Say nothing: for nodes that are made by a program, without a configuration."""
    return b"", f"{node.settings.node} has no configuration that it could show"
