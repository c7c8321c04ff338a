"""read_scores(): a page of scores that an aggregator below has sent, checked as `foreign_pages`."""

from __future__ import annotations

from itertools import pairwise

import msgspec

from submerge import PeerError
from submerge.protocol.names import is_name
from submerge_aggregator.history.scores import MOST_STEPS, ScoresAsked
from submerge_aggregator.history.views import ScoresPage


def read_scores(body: bytes, asked: ScoresAsked) -> ScoresPage:
    """Return the page that a reply holds.

    Raises PeerError if no honest aggregator sends it as the answer to this question.
    """
    try:
        page = msgspec.json.decode(body, type=ScoresPage)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise PeerError("expected a page of scores, got something else") from error
    steps = asked.steps
    if (page.group, page.step_s, page.first_s) != (asked.group, steps.step_s, steps.first_s):
        raise PeerError("expected the group and the steps that were asked for, got others")
    names = [asked.after, *(each.node for each in page.nodes)]
    ordered = all(before < name for before, name in pairwise(names))
    if not (is_name(page.aggregator) and ordered and all(map(is_name, names[1:]))):
        raise PeerError("expected nodes in the order of their names, got others")
    if asked.node and names[1:] not in ([], [asked.node]):
        raise PeerError(f"expected scores of {asked.node}, got others")
    if page.more and not page.nodes:
        raise PeerError("expected nodes before there are more, got none")
    lengths = {len(each.levels) for each in page.nodes}
    if len(lengths) > 1 or max(lengths, default=0) > MOST_STEPS:
        raise PeerError(f"expected {MOST_STEPS} levels of each node at most, got more, or uneven")
    return page
