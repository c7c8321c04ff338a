"""The product costs no more than `budget.toml` grants (`support/budget.py` counts)."""

from __future__ import annotations

import ast

from support import budget


def test_nothing_costs_more_than_its_ceiling():
    """Each figure has a ceiling that an issue granted, and keeps it."""
    ceilings, costs = budget.BUDGET["ceilings"], budget.costs()

    assert sorted(costs) == sorted(ceilings)
    assert [] == [what for what, ceiling in ceilings.items() if not ceiling["issue"]]
    assert {} == {
        what: f"{now}, at most {ceilings[what]['most']}"
        for what, now in costs.items()
        if now > ceilings[what]["most"]
    }


def test_figures_that_tell_nothing_are_found():
    """A counter whose subject has moved would say 0, and hold for ever."""
    none = {what for what, now in budget.costs().items() if not now}

    assert none <= {"files over 700 lines", "lines of lab", "folders with fewer than three files"}


def test_an_option_is_counted_where_it_is_declared():
    """What only builds options, or prints a version, declares none."""
    source = """
def flag_option(name): return click.option(name)
@click.option("--a")
@flag_option("--b")
@click.version_option()
def command(): pass
"""
    assert 2 == budget.options(ast.parse(source))
