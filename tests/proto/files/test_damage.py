"""Model files that are damaged, cut short, or not what they say: refused, each in one line."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge import PeerError
from submerge.stats.quantile_sketch import FINE, QuantileSketch, packed
from submerge_proto.files import learnt as learnt_file
from submerge_proto.files.learnt import unpacked
from submerge_proto.v1 import kept_pb2
from submerge_proto.wire import bounds
from support.damage import damaged
from support.forged_files import message_of, payload_of, sealed
from support.golden_kept import FOLDER
from support.wire import reported

GOLDEN = (FOLDER / "form_3.model").read_bytes()
LINE = GOLDEN.index(b"\n")
WHOLE = reported(unpacked(GOLDEN))


@given(st.integers(0, 8 * len(GOLDEN) - 1))
def test_no_flipped_bit_goes_unseen(bit):
    """Wherever it is: in the line, in the model, in what merges."""
    data = bytearray(GOLDEN)
    data[bit // 8] ^= 1 << bit % 8
    with pytest.raises(PeerError) as refused:
        unpacked(bytes(data))

    assert "\n" not in str(refused.value)


@given(st.integers(0, len(GOLDEN) - 1))
def test_a_file_that_is_cut_short_is_refused(end):
    """At every length; from its second line on it says how much is missing."""
    with pytest.raises(PeerError, match="copy it again" if end > LINE else "form|first line"):
        unpacked(GOLDEN[:end])


@given(st.integers(0, 2**32 - 1))
def test_damage_of_any_kind_is_refused(seed):
    """Pieces that are repeated, too: or the bytes are the same after all."""
    data = damaged(GOLDEN, np.random.default_rng(seed))
    if data != GOLDEN:
        with pytest.raises(PeerError):
            unpacked(data)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "expected a first line that says so, got other bytes"),
        (b"my thesis", "expected a first line that says so, got other bytes"),
        (
            b'submerge model 2 {"rank": 2, "linear_rank": null}\n',
            "form 2 of it, from before",
        ),
        (b"submerge model 4 {}\n", "form '4' of it: update submerge"),
        (b"submerge model \x1b[2J {}\n", r"form '\?\[2J' of it"),
        (b"submerge model 3 {}\n", "None bytes of it were written, and 0 are there"),
        (b"submerge model 3 []\n", "a first line that cannot be read"),
        (b"submerge model 3 " + b"[" * 150 + b"\n", "a first line that cannot be read"),
        (b'submerge model 3 {"bytes": 0}', "a first line that cannot be read"),
        (b'submerge model 3 {"bytes": 0}\n', "damaged: its bytes are not those"),
        (
            b'submerge model 3 {"bytes": 0, "x": "' + b"x" * 200 + b'"}\n',
            "a first line that cannot",
        ),
        (sealed(b""), "expected a hello, a model, an answer or a question, got none"),
        (sealed(b"\xff"), "a message that cannot be read"),
        (sealed(b"\x0a\x02\x0a\x00"), "speaks version 1 of the protocol, got version 0"),
    ],
)
def test_what_is_no_such_file_is_refused(data, why):
    with pytest.raises(PeerError, match=why):
        unpacked(data)


# -- behind the digest -----------------------------------------------------------------


def changed(**fields) -> bytes:
    """The golden file with other fields, and the digest that it then has."""
    message = message_of(GOLDEN)
    for name, value in fields.items():
        holder = message
        *path, last = name.split("__")
        for part in path:
            holder = getattr(holder, part)
        if isinstance(value, list):
            getattr(holder, last)[:] = value
        else:
            setattr(holder, last, value)
    return sealed(message.SerializeToString())


def floats(*numbers: float) -> bytes:
    return np.array(numbers, dtype="<f8").tobytes()


def scatter(*diagonal: float, beside: float = 0.0) -> bytes:
    """The upper triangle of a (4, 4) matrix; `beside` is the first number off the diagonal."""
    matrix = np.diag(np.array(diagonal, dtype=float))
    matrix[0, 1] = beside
    return floats(*matrix[np.triu_indices(4)])


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"model": b"\x0a\x00"}, "speaks version 1 of the protocol, got version 0"),
        ({"subspace__dim": 3}, "mean: expected 3 float64"),
        ({"subspace__weight": float("nan")}, "weight, energy and bound must be finite"),
        ({"subspace__weight": 1e39}, "weight must be"),
        ({"subspace__mean": floats(1e30, 0, 0, 0)}, "means must be below"),
        ({"subspace__energy": 1.0}, "energy must not be less than the scatter holds"),
        ({"subspace__exact": scatter(1, 1, 1, float("inf"))}, "a scatter must be finite"),
        ({"subspace__exact": scatter(1, 1, 1, -1e-3)}, "a scatter must be positive semi-definite"),
        ({"subspace__exact": scatter(1, 1, 1, 1, beside=2)}, "must be positive semi-definite"),
        ({"subspace__exact": scatter(0, 0, 0, 0, beside=1)}, "must be positive semi-definite"),
        ({"subspace__exact": scatter(0, 0, 0, 0, beside=1e-12)}, "must be positive semi-definite"),
        ({"subspace__exact": scatter(*[1e-300] * 4, beside=1e300)}, "must be positive semi-def"),
        ({"subspace__exact": scatter(30, 1, 1, 1)}, "energies of channels must sum"),
        ({"subspace__channel_energies": floats(-1, 40, 20, 5)}, "must not be negative"),
        ({"moments__mean": floats(1, 2), "moments__m2": floats(1, 2)}, "moments of 4 channels"),
        ({"chunks__keys": b"\1" * 31}, "with keys of 32 bytes, got 31 bytes"),
        ({"chunks__rows": b""}, "rows: expected those of 4 chunks, got 0 bytes"),
        ({"chunks__machine": b"\0\0\0\xff" * 4}, "machines: expected places below 2"),
        ({"chunks__machines": ["b", "a"]}, "machines must ascend"),
        ({"chunks__files": ["a\x1b", "b", "c"]}, "files: expected printable names"),
        ({"chunks__first": floats(0, 0, 0, float("nan"))}, "or neither"),
        ({"rank": 2**32 - 1, "lags": 70_000}, "lags must be a whole number from 1 to 65536"),
        ({"period_s": -1.0}, "period_s must be 0 to 1e"),
    ],
)
def test_a_forged_number_is_refused(fields, why):
    """As it is in a message: the digest says that a file is whole, and not that it is honest."""
    with pytest.raises(PeerError, match=why):
        unpacked(changed(**fields))


@pytest.mark.parametrize(
    ("part", "field", "data", "why"),
    [
        ("residual_scale", "squares", floats(-1, 1, 1, 1), "squares must be 0 to"),
        ("residual_scale", "weight", floats(1e39, 1, 1, 1), "weight must be 0 to"),
        ("residual_scale", "squares", floats(1, 1), "expected as many weights as 2 squares"),
        ("own", "rows", floats(0, 0, 0, -1e39), "rows must be -3.4e"),
        ("own", "weight", -1.0, "weight must be 0 to"),
        ("own", "rows", floats(0, 0, 0), "expected 4 channels in each part"),
    ],
)
def test_a_forged_monitor_is_refused(part, field, data, why):
    """Its numbers are compared with what rows can give: a node's own record is believed."""
    message = message_of(GOLDEN)
    state = kept_pb2.NodeMonitor.FromString(message.monitors[0].state)
    setattr(getattr(state, part), field, data)
    message.monitors[0].state = state.SerializeToString()
    with pytest.raises(PeerError, match=f"the monitor of press 7.*{why}|{why}"):
        unpacked(sealed(message.SerializeToString()))


@pytest.mark.parametrize("holder", ["habits", "run_lengths"])
def test_a_count_that_no_rows_have_is_refused(holder):
    """Nor one that is no whole number of 64 bits."""
    message = message_of(GOLDEN)
    for number in (-1.0, 1e300):
        state = kept_pb2.NodeMonitor.FromString(message.monitors[0].state)
        counts = {"habits": "learnt", "run_lengths": "longest"}[holder]
        (column,) = (each for each in getattr(state, holder) if each.name == counts)
        column.values = floats(number, 1, 1, 1)
        message.monitors[0].state = state.SerializeToString()
        with pytest.raises(PeerError, match=f"press 7: {counts} must be 0 to"):
            unpacked(sealed(message.SerializeToString()))


def monitored(change) -> bytes:
    """The golden file with the monitor of its first machine changed."""
    message = message_of(GOLDEN)
    state = kept_pb2.NodeMonitor.FromString(message.monitors[0].state)
    change(state.detector)
    message.monitors[0].state = state.SerializeToString()
    return sealed(message.SerializeToString())


def many_maxima(detector):
    """2^60 blocks in one sketch."""
    detector.hours.windows[0].before = packed(QuantileSketch(-2, ((5, 2**60),), FINE))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda detector: detector.excused.append(4), "expected channels of its schema"),
        (lambda detector: detector.excused.extend([1, 2, 3]), "expected channels of its schema"),
        (lambda detector: setattr(detector.hours, "watched_s", -1), "a monitored time, or a limit"),
        (lambda detector: setattr(detector.hours.spared[0], "value", -1), "or a limit must be 0"),
        (many_maxima, "scores must be at most 9007199254740992"),
        (lambda detector: detector.excused.extend([1] * 9000), "fewer parts, got too many"),
    ],
)
def test_a_forged_history_of_limits_is_refused(change, why):
    """What a machine's limits follow from: channels, times, block maxima."""
    with pytest.raises(PeerError, match=why):
        unpacked(monitored(change))


def test_a_file_holds_no_open_alarm():
    """An alarm belongs to a running node; a file that has one is not ours."""
    with pytest.raises(PeerError, match="press 7: expected no alarm and no order, got one"):
        unpacked(monitored(lambda detector: detector.alarms.add()))


# -- what it may take ------------------------------------------------------------------


def test_a_file_of_too_many_parts_is_refused_before_it_is_parsed(monkeypatch):
    """Two bytes become an object of forty: a megabyte of them would be twenty."""
    monkeypatch.setattr(learnt_file, "MOST_PARTS", 1000)
    payload = payload_of(GOLDEN) + b"\x42\x00" * 2000  # monitors without anything
    with pytest.raises(PeerError, match="fewer parts, got too many"):
        unpacked(sealed(payload))


def test_the_bound_on_messages_is_as_it_was():
    """A file may have more parts than a message; messages may not."""
    with pytest.raises(PeerError, match="fewer parts, got too many"):
        bounds.check(kept_pb2.NodeMonitor, b"\x3a\x00" * (bounds.MOST_PARTS + 1))


def test_a_file_that_is_too_long_is_refused(monkeypatch):
    """Before its digest is computed."""
    monkeypatch.setattr(learnt_file, "MOST_BYTES", len(GOLDEN) - 1)
    with pytest.raises(PeerError, match=r"expected at most .* bytes, got more"):
        unpacked(GOLDEN)


@pytest.mark.parametrize(
    ("most", "field", "why"),
    [
        ("MOST_CHUNKS", "keys", "expected at most 3 chunks"),
        ("MOST_MACHINES", "machines", "expected at most 1 machines, got 2"),
        ("MOST_FILES", "files", "expected at most 2 files, got 3"),
    ],
)
def test_there_are_at_most_so_many(most, field, why, monkeypatch):
    """Chunks, machines and files each have a bound."""
    from submerge_proto.files import chunks

    message = message_of(GOLDEN).chunks
    n = {"keys": 4, "machines": 2, "files": 3}[field]
    monkeypatch.setattr(chunks, most, n - 1)
    with pytest.raises(PeerError, match=why):
        chunks.chunks_of(message)


def test_the_golden_file_is_whole():
    """Or else the tests above would show nothing."""
    assert WHOLE == reported(unpacked(sealed(payload_of(GOLDEN))))
