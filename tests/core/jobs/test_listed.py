"""What a kind lists of itself is what it takes and gives: commands are made of the list."""

from __future__ import annotations

import numpy as np
import pytest

from submerge.errors import UsageError
from submerge.jobs.kinds import KINDS, settings_of
from submerge.jobs.local_run import run_here

NEEDED = 3
"""The value of settings without a default."""

ROWS = np.random.default_rng(0).normal(size=(60, 4))


def needed(kind: str) -> dict[str, int]:
    """The fewest settings that a kind takes."""
    return {each.name: NEEDED for each in KINDS[kind].listed if not each.default}


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_knows_the_settings_that_it_lists_and_no_others(kind):
    """It names those that it knows when it is given another one."""
    with pytest.raises(UsageError, match="settings are") as error:
        KINDS[kind]({**needed(kind), "nonsense": 1}, 4)
    known = str(error.value).removeprefix("settings are ").split(", got ")[0].split(", ")

    assert sorted(each.name for each in settings_of(kind)) == sorted(known)


@pytest.mark.parametrize("kind", KINDS)
def test_an_answer_has_the_arrays_that_are_listed(kind):
    """No others; all of them with rows held out, and clusters. Places have a number a channel."""
    asked = {**needed(kind), "held_out": 0.5}
    asked |= {each.name: 2 for each in KINDS[kind].listed if each.name == "clusters"}
    answer = run_here(kind, asked, {"a": ROWS[:30], "b": ROWS[30:]})
    listed = {each.name: each.form for each in KINDS[kind].answers}

    assert {*listed} == {*answer}
    in_rows = [name for name, form in listed.items() if form != "plain"]
    assert [4] * len(in_rows) == [answer[name].shape[-1] for name in in_rows]


@pytest.mark.parametrize("kind", KINDS)
def test_each_setting_and_array_is_explained(kind):
    """In one line that ends with a full stop; a setting that is needed stands first."""
    settings = settings_of(kind)
    texts = [each.meaning for each in (*settings, *KINDS[kind].answers)]

    assert [] == [text for text in texts if "\n" in text or not text.endswith(".")]
    assert sorted(settings, key=lambda each: bool(each.default)) == [*settings]
