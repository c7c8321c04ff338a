"""What is wrong with foreign bytes is said in one word of a few, by which refusals are counted."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

from submerge import PeerError, errors
from submerge.protocol.messages import Reason
from submerge_proto.wire import codec
from support.wire import HONEST, OF_KERNELS, OF_NARROW, form_of


def _set(place: str, value: Any) -> Callable[[Any], None]:
    """Return what puts a value into a field, `a.b`; arrays as float64."""

    def lie(message: Any) -> None:
        *path, last = place.split(".")
        for name in path:
            message = getattr(message, name)
        is_list = isinstance(value, list)
        setattr(message, last, np.array(value, "<f8").tobytes() if is_list else value)

    return lie


NAN = float("nan")

LIES: dict[errors.Kind, list[tuple[str, Callable[[Any], Any]]]] = {
    "malformed": [("answer", _set("reason", 99)), ("joined", _set("reason", 0))],
    "oversize": [
        ("join", lambda m: [m.past_fences.add() for _ in range(257)]),
        ("report", lambda m: m.census.ages.extend([1] * 65)),
    ],
    "version": [("join", _set("header.version", 2)), ("hello", _set("header.version", 0))],
    "name": [
        ("report", _set("header.node", "a/b")),
        ("report", _set("fence", b"f")),
        ("report", _set("fingerprint", b"")),
    ],
    "shape": [
        ("report", _set("subspace.dim", 5)),
        ("report", _set("subspace.columns", b"")),
        ("report", _set("subspace.channel_energies", [1.0] * 5)),
        ("report of narrow", _set("subspace.columns", b"")),
        ("report of narrow", _set("subspace.whole", False)),
        ("report", _set("moments.m2", [9.0] * 5)),
        ("model", lambda m: m.limits.spe.append(1.0)),
    ],
    "range": [
        ("report", _set("subspace.weight", -1.0)),
        ("report", _set("subspace.sigma", [5.0, 4.0, -3.0])),
        ("report", _set("subspace.mean", [0.0] * 5 + [1.9e19])),
        ("report", _set("counts.learnt", 2**53 + 1)),
        ("report", _set("subspace.channel_energies", [-1.0] + [70.0] * 5)),
        ("report", _set("moments.m2", [-1.0] * 6)),
        ("answer", _set("newest", 2**63)),
    ],
    "not_finite": [
        ("report", _set("subspace.weight", NAN)),
        ("report", _set("subspace.sigma", [5.0, 4.0, NAN])),
        ("report", _set("subspace.columns", np.full(18, NAN, "<f4").tobytes())),
        ("report", _set("subspace.channel_energies", [NAN] * 6)),
        ("report of narrow", _set("subspace.columns", np.full(21, NAN, "<f4").tobytes())),
        ("report", _set("moments.mean", [NAN] * 6)),
        ("report", _set("as_of_s", NAN)),
        ("report of kernels", _set("linear.weight", NAN)),
        ("report of kernels", _set("moments.points", np.full(12, NAN, "<f4").tobytes())),
        ("model", lambda m: m.limits.shares.__setitem__(0, NAN)),
    ],
    "unsorted": [
        ("report", _set("subspace.sigma", [3.0, 4.0, 5.0])),
        ("report of kernels", _set("moments.priorities", b"\1" * 24)),
    ],
    "not_orthonormal": [("report", _set("subspace.columns", np.ones(18, "<f4").tobytes()))],
    "energy": [
        ("report", _set("subspace.energy", 49.0)),
        ("report", _set("subspace.channel_energies", [60.0, 0, 0, 0, 0, 0])),
        ("report", _set("subspace.channel_energies", [6.25, 6.25, 50, 0, 0, 0])),
        ("report of narrow", _set("subspace.columns", np.ones(21, "<f4").tobytes())),
    ],
    "sketch": [("report", _set("scores.spe", b"\0\x03\0\x01"))],
    "schema": [
        ("model", _set("schema", HONEST["join"].schema.replace(b"6", b"7"))),
        ("model of kernels", lambda m: m.ClearField("linear")),
    ],
}


@pytest.mark.parametrize(
    ("kind", "name", "lie"),
    [(kind, name, lie) for kind, lies in LIES.items() for name, lie in lies],
)
def test_a_refusal_says_of_which_kind_it_is(kind, name, lie):
    """Whoever counts refusals sees whether a fleet is out of date, a sensor broken, or a liar."""
    name, _, of = name.partition(" of ")
    honest = {"kernels": OF_KERNELS, "narrow": OF_NARROW, "": HONEST}[of]
    form, message = form_of(name, honest)
    lie(message)

    with pytest.raises(PeerError) as caught:
        codec.decode(codec.kind_of(honest[name]), form.SerializeToString())
    assert kind == caught.value.kind


@pytest.mark.parametrize("name", HONEST)
def test_what_is_no_message_is_malformed(name):
    """Cut short, or nothing at all but noise."""
    kind, data = codec.kind_of(HONEST[name]), codec.encode(HONEST[name])
    for damaged in (data[:-1], b"\xff" * 20):
        with pytest.raises(PeerError) as caught:
            codec.decode(kind, damaged)
        assert "malformed" == caught.value.kind


def test_every_kind_is_told_apart_and_explained():
    """The words, their meanings and the tests of them are one list."""
    assert set(get_args(errors.Kind)) == set(errors.KINDS) == set(LIES)


def test_the_table_for_people_is_the_table_for_programs():
    """docs/wire.md says of each what its text here says."""
    page = (Path(__file__).parents[3] / "docs" / "wire.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", page.partition("in a word")[2], re.M)

    assert errors.KINDS == dict(rows[: len(errors.KINDS)])


def test_what_is_told_of_it_keeps_its_kind():
    """A sender hears INVALID; whoever counts refusals sees more."""
    form, message = form_of("report")
    message.subspace.energy = 49.0

    with pytest.raises(codec.MessageRefused) as caught:
        codec.decode("report", form.SerializeToString())
    assert ("energy", Reason.INVALID) == (caught.value.kind, caught.value.reason)
