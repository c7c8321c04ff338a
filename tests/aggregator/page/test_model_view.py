"""The model as the page's charts get it."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from submerge import PeerError
from submerge.schema import Channel, Schema
from submerge_aggregator.page.data import MOST_CHANNELS, ModelView, model_view
from support.house import House

HOSTILE = [
    "<script>alert(1)</script>",
    "\u202egnp.exe",
    "\x1b[31mred",
    "a" * 200,
    "'\"&\\",
    "\ufeff",
]


def shown(folder, schema: Schema, rows: np.ndarray) -> ModelView:
    """Return the view of what a root has learnt of rows."""
    with House(folder, schema=schema) as house:
        house.hears("c", rows, schema=schema)
        house.passes(3600.0)
        return model_view(house.asks("GET", "/model/room").body)


def test_names_of_channels_arrive_as_they_are(tmp_path):
    """The page shows them as text: nothing is cut or escaped on the way."""
    schema = Schema(tuple(Channel(name, name[:20]) for name in HOSTILE))

    view = shown(tmp_path, schema, np.random.default_rng(0).normal(size=(60, 6)))

    assert HOSTILE == view.channels
    assert HOSTILE == msgspec.json.decode(msgspec.json.encode(view))["channels"]
    assert [name[:20] for name in HOSTILE] == view.units


def test_directions_explain_all_but_the_rest(tmp_path):
    """The rest bounds what one more direction could explain."""
    schema = Schema(tuple(Channel(f"c{i}") for i in range(6)))
    rows = np.random.default_rng(0).normal(size=(60, 6)) * [9, 5, 1, 1, 1, 1]

    view = shown(tmp_path, schema, rows)

    assert view.directions[0].share > view.directions[1].share
    assert pytest.approx(1.0, abs=1e-4) == sum(d.share for d in view.directions) + view.rest
    assert all(len(view.channels) == len(each.loadings) for each in view.directions)


def test_of_many_channels_those_with_the_largest_parts_are_shown(tmp_path):
    """In their own order; the number of the others is said."""
    many = MOST_CHANNELS + 100
    schema = Schema(tuple(Channel(f"c{i:04}") for i in range(many)))
    loud = np.arange(many) >= 100
    rows = np.random.default_rng(0).normal(size=(50, 1)) * np.where(loud, 1.0, 1e-3)

    view = shown(tmp_path, schema, rows)

    assert [f"c{i:04}" for i in range(100, many)] == view.channels
    assert 100 == view.left_out


def test_what_is_no_model_is_refused():
    with pytest.raises(PeerError):
        model_view(b"\x00 no model")
