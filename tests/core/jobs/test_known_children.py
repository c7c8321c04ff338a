"""A parent asks the children of a job's group."""

from __future__ import annotations

import numpy as np
import pytest

from submerge.jobs.machine import ChildrenKnown, KnownChildren, OpenJob, SendJob
from submerge.jobs.root import JobRoot
from submerge.protocol.machine import Now, Start
from support.job_table import job


def test_what_was_said_last_of_a_group_holds():
    """What is said of no group holds for those of which nothing was said."""
    known = KnownChildren()
    assert frozenset() == known.of("room").names
    known.learn(ChildrenKnown(frozenset("a")))
    known.learn(ChildrenKnown(frozenset("b"), group="room"))
    known.learn(ChildrenKnown(frozenset("c"), group="room"))

    assert frozenset("c") == known.of("room").names
    assert frozenset("a") == known.of("hall").names


@pytest.mark.parametrize(("group", "asked"), [("room", {"a"}), ("hall", {"b"})])
def test_a_root_asks_those_of_the_group(group, asked):
    """Others would only be waited for."""
    root, now = JobRoot("root", np.random.default_rng(0)), Now(0.0, 1e9, True)
    root.step(Start({}), now)
    root.step(ChildrenKnown(frozenset("a"), group="room"), now)
    root.step(ChildrenKnown(frozenset("b"), group="hall"), now)
    effects = root.step(OpenJob(job(group=group)), now)

    assert asked == {each.to for each in effects if isinstance(each, SendJob)}
