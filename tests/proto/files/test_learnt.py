"""What was learnt as a file: it comes back to the last bit, and equal content is equal bytes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from submerge import PeerError, UsageError
from submerge.client.alarms.highest import HighestSoFar
from submerge.history.knowledge import Learnt
from submerge.protocol.desired_state import DesiredState
from submerge.protocol.history import Chunk
from submerge_proto.files.chunks import chunks, chunks_of
from submerge_proto.files.learnt import packed, unpacked, without_alarms
from support import golden_client, golden_learnt
from support import golden_parts as parts
from support.forged_files import forged, payload_of, sealed
from support.golden_kept import FOLDER
from support.golden_learnt import chunk, from_files, monitor, of_a_fleet
from support.wire import reported

texts = st.text(st.characters(categories=["L", "N", "P"]), max_size=20)
seconds = st.floats(-1e12, 1e12)


@st.composite
def some_chunks(draw: st.DrawFn) -> list[Chunk]:
    """Chunks with different keys, in any order."""
    keys = draw(st.sets(st.binary(min_size=32, max_size=32), max_size=8))
    found = []
    for key in keys:
        times = draw(st.tuples(seconds, seconds) | st.just((np.nan, np.nan)))
        rows = draw(st.integers(1, 2**40))
        found.append(Chunk(key, draw(texts), rows, min(times), max(times), draw(texts)))
    return draw(st.permutations(found))


@settings(max_examples=30)
@given(some_chunks())
def test_chunks_come_back_by_key(given_chunks):
    """Whatever order they were in, with every name and time, to the last bit."""
    expected = sorted(given_chunks, key=lambda each: each.key)

    assert reported(expected) == reported(chunks_of(chunks(given_chunks)))


@settings(max_examples=30)
@given(some_chunks())
def test_the_order_of_chunks_says_nothing(given_chunks):
    """The same chunks are the same bytes."""
    expected, got = (
        chunks(each).SerializeToString(deterministic=True)
        for each in (given_chunks, given_chunks[::-1])
    )

    assert expected == got


def test_rows_are_those_of_all_chunks():
    """4096 less 1, 2, 3 and 4."""
    assert 4 * 4096 - 10 == from_files().rows


def test_what_merges_keeps_every_digit():
    """In float64, where a model has float32: a whole scatter, and directions."""
    scatter, directions = (
        unpacked(packed(each())).learnt.summary.pieces for each in (from_files, of_a_fleet)
    )

    assert reported(parts.whole(dtype="<f8")) == reported(scatter[0])
    assert ["<f8", "<f8"] == [piece.basis.dtype.str for piece in directions]


def test_equal_content_is_equal_bytes():
    """In whatever order machines, chunks and the kinds of scores came."""
    learnt = from_files()
    other = [(machine, _reversed(state)) for machine, state in reversed(learnt.monitors)]
    same = replace(learnt, chunks=learnt.chunks[::-1], monitors=tuple(other))

    assert packed(learnt) == packed(same)


def _reversed(state):
    seen = state.detector
    hours = replace(
        seen.hours,
        windows=dict(reversed(seen.hours.windows.items())),
        spared=dict(reversed(seen.hours.spared.items())),
    )
    numbers = (seen.highest.rows, seen.highest.values, seen.highest.means)
    highest = HighestSoFar(*(dict(reversed(each.items())) for each in numbers))
    return replace(state, detector=replace(seen, hours=hours, highest=highest))


def test_alarms_and_orders_stay_at_the_node():
    """A running node's monitor leaves its alarms, its verdicts and their model at home."""
    node = golden_client.of_a_level()["lookout",]
    kept = unpacked(packed(replace(of_a_fleet(), lags=1, monitors=(("press-3", node),))))
    ((machine, state),) = kept.learnt.monitors

    assert ("press-3", DesiredState("press-3", 0)) == (machine, state.desired)
    assert ((), 0.0, {}, 0) == (
        state.detector.alarms,
        state.detector.held_s,
        state.detector.frozen,
        state.detector.raised,
    )
    assert (None, None, None) == (state.reference, state.held, state.level)
    expected = replace(without_alarms(node), desired=DesiredState("press-3", 0))
    assert reported(expected.habits) == reported(state.habits)
    assert reported(expected.residual_scale) == reported(state.residual_scale)


def test_a_summary_that_has_faded_away_is_left_out():
    """Merged with others it would be rounding."""
    faded = replace(parts.linear(dtype="<f8"), weight=1e-200)

    assert unpacked(packed(replace(of_linear(), summary=faded))).learnt.summary is None


def of_linear(**fields) -> Learnt:
    """The model of a linear group, alone."""
    return replace(golden_learnt.below_a_root(), **fields)


def test_a_long_or_foreign_file_name_is_cut():
    """It is for people: bytes that are no text, and what a terminal would obey, become marks."""
    one = chunk(1, "pump-3", "\udcff\x1b[2J" + "x" * 300, 0.0)
    (back,) = unpacked(packed(of_linear(chunks=(one,)))).learnt.chunks

    assert "??[2J" + "x" * 195 == back.file


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"moments": parts.moments(5, 9, sample=False)}, "expected moments of 4 channels, got 5"),
        ({"summary": parts.kernel()}, "what merges is of other dimensions"),
        (
            {"chunks": (chunk(1, "a", "", 0.0), chunk(1, "b", "", 0.0))},
            "keys of chunks must ascend",
        ),
        ({"chunks": (replace(chunk(1, "a", "", 0.0), key=b"x"),)}, "keys of 32 bytes, got 1 bytes"),
        ({"chunks": (replace(chunk(1, "a", "", 0.0), rows=0),)}, "a chunk has one row or more"),
        ({"chunks": (replace(chunk(1, "a", "", 0.0), rows=-1),)}, "saved and read again, got"),
        ({"chunks": (replace(chunk(1, "a", "", 9.0), last=8.0),)}, "a first that is not after the"),
        ({"chunks": (chunk(1, "a\nb", "", 0.0),)}, "machines: expected printable names"),
        ({"chunks": (chunk(1, "\udcff", "", 0.0),)}, "saved and read again, got"),
        ({"origin": "x" * 201}, "an origin: expected printable names of at most 200 letters"),
        ({"lags": 0}, "lags must be a whole number from 1"),
        ({"lags": 3, "monitors": (("a", monitor("a")),)}, "expected 1 channels in each part"),
        ({"period_s": np.nan}, "period_s must be finite"),
        ({"monitors": (("a", monitor("a")), ("a", monitor("a")))}, "machines must ascend"),
        ({"monitors": (("a", monitor("a", fingerprint="0" * 64)),)}, "a is of another schema"),
        ({"monitors": (("a", monitor("a", habits=None)),)}, "all or none of run lengths"),
        ({"monitors": (("a", monitor("a", offset=np.full(4, 1e39))),)}, "offset must be"),
    ],
)
def test_what_does_not_fit_together_is_not_written(changes, why):
    """One line says what: a file that is refused ten years later is of no use."""
    with pytest.raises(UsageError, match=why) as refused:
        packed(of_linear(**changes))

    assert "\n" not in str(refused.value)


@pytest.mark.slow
@pytest.mark.parametrize("name", golden_learnt.LEARNT)
@settings(max_examples=300)
@given(seed=st.integers(0, 2**32 - 1))
def test_a_forged_file_is_refused_or_is_as_good_as_any(name, seed):
    """Changed behind its digest. What is taken can be saved and read again, and stays the same."""
    data = forged((FOLDER / name).read_bytes(), np.random.default_rng(seed))
    try:
        found = unpacked(data)
    except PeerError:
        return
    again = packed(found.learnt, rank=found.rank, linear_rank=found.linear_rank)
    back = unpacked(again)

    assert again == packed(back.learnt, rank=back.rank, linear_rank=back.linear_rank)


def test_what_a_later_version_adds_is_passed_over():
    """A field that is not known yet changes nothing of the others."""
    data = (FOLDER / "form_3.model").read_bytes()
    later = sealed(payload_of(data) + b"\xfa\x01\x01x")

    assert reported(unpacked(data)) == reported(unpacked(later))
