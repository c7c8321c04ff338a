"""Names that strangers chose, in every view that shows them: text, and nothing else.

Nodes, groups and alarms cannot have such names: the border lets letters, digits and ._- through
(`protocol.names`). Channels, units and what they cause can: a schema and an alarm carry any text.
"""

from __future__ import annotations

from urllib.parse import urlencode

import pytest

from submerge.protocol.alarm_status import Deviation
from submerge.schema import Channel, Schema
from support.alarmed import alarm
from support.hostile_names import HOSTILE, MARK, does_nothing
from support.paged_fleet import NODES, PagedFleet
from support.views import VIEWS, opened

pytestmark = pytest.mark.slow

PHONE = {"width": 375, "height": 740}


NAMES = [*HOSTILE.values()]
UNITS = NAMES[1:] + NAMES[:1]


class HostileFleet(PagedFleet):
    """Its channels and units have all of the names, and its alarms blame each of the channels."""

    def alarms(self, node):
        at = {"began": self.now - 1200.0, "peaked": self.now - 300.0}
        i = NODES.index(node)
        blamed = (NAMES * 2)[3 * i : 3 * i + 3]
        off = tuple(Deviation(each, 1.0, 2.0) for each in blamed)
        known = at | {"top": tuple((each, 0.3) for each in blamed), "deviations": off}
        return (alarm(node, 1, **known), alarm(node, 2, ended=4000.0, **known))


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    schema = Schema(tuple(map(Channel, NAMES, UNITS)))
    with HostileFleet(tmp_path_factory.mktemp("root"), schema=schema) as fleet:
        yield fleet


@pytest.mark.parametrize("view", [*VIEWS])
def test_a_view_shows_them_and_nothing_happens(fleet, visit, view):
    """No element, no link, no mark that turns what is read, and no page wider than its screen."""
    visited = visit(viewport=PHONE)
    visited.has_session(fleet, "operate")
    visited.expects("404 GET /nowhere")
    page = opened(visited.page(), fleet.origin, view)
    for twin in page.locator("summary").all():
        twin.click()

    does_nothing(page)
    assert 375 == page.evaluate("document.documentElement.scrollWidth")
    if view in ("now", "node", "alarms", "model"):
        assert MARK in page.inner_text("main")


@pytest.mark.parametrize("what", ["node", "path", "group", "as"])
@pytest.mark.parametrize("name", ["markup", "direction", "address"])
def test_a_link_with_such_a_name_does_nothing(fleet, visit, what, name):
    """Somebody may send a person an address of the page; the aggregator refuses the name in it."""
    visited = visit()
    visited.has_session(fleet, "operate")
    visited.expects("400 GET /")
    asked = {"group": "room", "node": NODES[0]} | {what: HOSTILE[name]}
    page = visited.page()
    page.goto(f"{fleet.origin}/node?{urlencode(asked)}")
    page.wait_for_selector("#to-node button, #link:not(:empty)")

    does_nothing(page)
