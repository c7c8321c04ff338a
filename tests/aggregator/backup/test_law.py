"""The law of a good copy: whatever a root has lived through, a copy of it gives its models."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from submerge_aggregator.backup import check_models, read_copy
from support.backups import config_of, configuration, copied
from support.house import SCHEMA, House
from support.nodes import GROUP, new_incarnation

nodes = st.integers(0, 7).map("c{}".format)
orders = st.sampled_from(["quarantine", "release", "forget", "forget?ban=1", "drop?old=1"])
reports = st.tuples(st.just("report"), nodes, st.integers(1, 3), st.integers(5, 300), st.booleans())
commands = st.tuples(st.just("order"), nodes, orders)
pauses = st.tuples(st.just("pass"), st.sampled_from([0.7, 61.3, 3_601.9, 90_000.4]))
lives = st.lists(reports | reports | reports | commands | pauses, min_size=3, max_size=40)


@pytest.mark.slow
@settings(max_examples=60)
@given(lives, st.booleans(), st.sampled_from([None, 600.0, 86_400.0]), st.integers(0, 999))
def test_a_copy_gives_the_models_of_the_root_that_ran(life, robust, half_life, seed):
    """Reports of several incarnations, finals, orders and days; robust groups, and rows that fade.

    A model is asked for again and again: what was merged in steps is the same as at once.
    """
    rng = np.random.default_rng(seed)
    schema = replace(SCHEMA, half_life=half_life)
    fades = "" if half_life is None else f"half_life_s = {half_life}"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        config = config_of(configuration(folder, half_life=fades, robust=robust))
        with House(folder, schema=schema, robust=robust) as house:
            for number, (what, *said) in enumerate(life):
                live(house, what, said, rng, schema)
                if number % 7 == 0:
                    copied(house, folder / "copy")
            copied(house, folder / "copy")
        (found,) = check_models(read_copy(folder / "copy"), config)

        assert "" == found.differs


def live(house: House, what: str, said: list, rng: np.random.Generator, schema) -> None:
    """Have a house go through one thing."""
    match what, *said:
        case "report", node, number, n, final:
            rows = rng.normal(size=(n, SCHEMA.dim)) * rng.uniform(0.1, 9.0)
            incarnation = new_incarnation(number)
            house.hears(node, rows, incarnation=incarnation, final=final, schema=schema)
        case "order", node, order:
            house.asks("POST", f"/nodes/{GROUP}/{node}/{order}")
        case "pass", seconds:
            house.passes(seconds)
