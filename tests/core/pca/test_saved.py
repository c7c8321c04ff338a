"""Saving and restoring: bit for bit, and nothing foreign is believed."""

from __future__ import annotations

import io
import json
import struct
import tracemalloc
import zipfile

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from submerge import (
    SAPCA,
    Channel,
    EnergyRank,
    FixedRank,
    PeerError,
    SapcaRank,
    Schema,
    UsageError,
    dumps,
    loads,
)
from support.strategies import rows_of, streams

rules = st.sampled_from(
    [FixedRank(1), FixedRank(3), SapcaRank(3, hold=2), EnergyRank(0.5, 0.9, start=2, highest=4)]
)


@given(
    streams(),
    rules,
    st.integers(0, 120),
    st.sampled_from(["auto", "never"]),
    st.sampled_from([np.float64, np.float32]),
    st.sampled_from([1.0, 0.95]),
    st.none() | st.integers(1, 25),
)
@example(
    # The rank had moved up, and the restored engine chose another memory.
    X=rows_of("noise", 11, 19, seed=0),
    rule=EnergyRank(0.5, 0.9, start=2, highest=4),
    when=11,
    exact="auto",
    dtype=np.float64,
    factor=1.0,
    block=11,
)
def test_a_restored_engine_goes_on_as_if_it_had_never_stopped(
    X, rule, when, exact, dtype, factor, block
):
    """Saved anywhere in the stream, mid-block too: the same bytes at the end."""
    if rule.start > X.shape[1]:
        X = np.hstack([X] * 4)[:, : max(X.shape[1], rule.start)]
    settings = {"exact": exact, "dtype": dtype, "forgetting_factor": factor, "block_size": block}
    # The same calls: blocks may follow them.
    straight = SAPCA(rule, **settings).partial_fit(X[:when]).partial_fit(X[when:])
    stopped = SAPCA(rule, **settings).partial_fit(X[:when])

    resumed = loads(dumps(stopped)).partial_fit(X[when:])

    assert dumps(straight) == dumps(resumed)
    assert straight.subspace.basis.tobytes() == resumed.subspace.basis.tobytes()
    assert straight.rank == resumed.rank


def test_saving_changes_nothing():
    """dumps twice, the same bytes; the engine is as it was."""
    engine = SAPCA(3).partial_fit(rows_of("noise", 77, 9, seed=0))

    assert dumps(engine) == dumps(engine)
    assert dumps(loads(dumps(engine))) == dumps(engine)


def test_an_engine_that_has_seen_nothing_can_be_saved():
    """Before the first row there are settings to keep."""
    restored = loads(dumps(SAPCA(SapcaRank(4), block_size=30, center=False)))

    assert (SapcaRank(4), 30, False) == (restored.rule, restored.block_size, restored.center)
    restored.partial_fit(rows_of("noise", 40, 9, seed=0))


def test_the_schema_travels_along():
    """A restored engine's summary still merges with its fleet's."""
    schema = Schema((Channel("a", "V"), Channel("b", "A")), center="own")
    engine = SAPCA(1, schema=schema).partial_fit(rows_of("noise", 9, 2, seed=0))

    assert schema.fingerprint == loads(dumps(engine)).subspace.schema


def test_a_rule_of_ones_own_cannot_be_saved():
    """Its fields are not ours to know."""

    class Mine(FixedRank):
        pass

    with pytest.raises(UsageError, match="got Mine"):
        dumps(SAPCA(Mine(2)))


def changed(data: bytes, **entries: object) -> bytes:
    with np.load(io.BytesIO(data)) as file:
        arrays = {name: file[name] for name in file.files}
    for name, value in entries.items():
        if value is None:
            del arrays[name]
        else:
            arrays[name] = value(arrays[name])
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


GOOD = dumps(SAPCA(2, block_size=8, exact="never").partial_fit(rows_of("noise", 30, 12, seed=0)))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x80\x04K\x01.",
        b"\x93NUMPY",
        GOOD[:-30],
        GOOD[: len(GOOD) // 2],
        changed(GOOD, about=None),
        changed(GOOD, sigma=None),
        changed(GOOD, rows=lambda a: a[:, :-1]),
        changed(GOOD, rows=lambda a: a * np.nan),
        changed(GOOD, mean=lambda a: a[:-1]),
        changed(GOOD, totals=lambda a: a[:-1]),
        changed(GOOD, waiting=lambda a: np.vstack([a, a, a])),
        changed(GOOD, about=lambda _: np.frombuffer(b"not json", np.uint8)),
        changed(GOOD, about=lambda _: np.frombuffer(b'{"form":2}', np.uint8)),
        changed(GOOD, about=lambda a: a[:-1]),
        changed(GOOD, about=lambda _: np.array([{}], dtype=object)),
    ],
)
def test_bytes_of_another_kind_are_refused(data):
    """Truncated, edited, pickled or simply foreign: one clear error, never a crash."""
    with pytest.raises(PeerError):
        loads(data)


def about(**changes: object):
    """Edit the JSON of a good file, under a checksum that is right again."""

    def edit(array: np.ndarray) -> np.ndarray:
        text = json.dumps(json.loads(array.tobytes()) | changes)
        return np.frombuffer(text.encode(), np.uint8)

    return changed(GOOD, about=edit)


@pytest.mark.parametrize(
    "data",
    [
        about(n_samples_seen=float("inf")),
        about(n_samples_seen=-3),
        about(schema=5),
        about(schema="[" * 100_000),
        about(schema=Schema.anonymous(10**15).canonical.decode()),
        about(schema=Schema.anonymous(12, center="none").canonical.decode()),
        about(block_size=10**13),
        about(block_size=3),
        about(block_size=None, rule={"kind": "fixed", "start": 0}),
        about(memory=-1),
        about(memory="1MB"),
        about(memory=None),
        about(target=-5),
        about(target=10**9),
        about(held=-3),
        about(center="no"),
        about(center=False),
        about(dtype="float16"),
        about(dtype="f8,,"),
        about(rule={"kind": "fixed", "start": 2.5}),
        changed(GOOD, totals=lambda a: -a),
        changed(GOOD, rows=lambda a: a * 3),
        changed(GOOD, rows=lambda a: a * 0),
        changed(GOOD, rows=lambda a: a * 1j),
        changed(GOOD, rows=lambda a: a.astype(np.float32)),
        changed(GOOD, sigma=lambda a: -a),
        changed(GOOD, sigma=lambda a: a[::-1]),
        changed(GOOD, sigma=lambda _: np.ones(40)),
        changed(GOOD, waiting=lambda a: np.full_like(a, 1e300)),
    ],
)
def test_what_contradicts_itself_is_refused(data):
    """A whole file of the right form, with values that no engine has."""
    with pytest.raises(PeerError):
        loads(data)


def test_a_scatter_where_none_can_be_is_refused():
    """With exact = "never" there is none."""
    exact = dumps(SAPCA(2).partial_fit(rows_of("noise", 100, 5, seed=0)))
    with pytest.raises(PeerError, match="never"):
        loads(
            changed(
                exact,
                about=lambda a: np.frombuffer(a.tobytes().replace(b'"auto"', b'"never"'), np.uint8),
            )
        )


def test_a_scatter_of_another_size_is_refused():
    """Before memory of the claimed size is allocated."""
    exact = dumps(SAPCA(2).partial_fit(rows_of("noise", 100, 5, seed=0)))
    for wrong in (np.eye(4), np.eye(6), np.eye(5, dtype=np.float32), np.ones((1, 5))):
        with pytest.raises(PeerError, match="scatter must be finite and of shape"):
            loads(changed(exact, scatter=lambda _, wrong=wrong: wrong))


def test_a_scatter_that_is_none_is_refused():
    """No data have a negative variance."""
    exact = dumps(SAPCA(2).partial_fit(rows_of("noise", 500, 5, seed=0)))
    with pytest.raises(PeerError, match="semi-definite"):
        loads(changed(exact, scatter=lambda a: -a))


def test_numpys_numbers_can_be_saved():
    """What an engine accepts it can also save."""
    rule = SapcaRank(np.int64(3), alpha=np.float32(0.01))
    engine = SAPCA(rule, oversample=np.int64(2), forgetting_factor=np.float32(0.9))
    engine.partial_fit(rows_of("noise", 30, 9, seed=0))

    assert dumps(loads(dumps(engine))) == dumps(engine)
    assert loads(dumps(SAPCA(FixedRank(np.int64(3))))).rule == FixedRank(3)


def test_a_file_of_form_1_says_what_to_do():
    """It is older than the first commit whose files are read."""
    first = changed(
        GOOD,
        about=lambda a: np.frombuffer(a.tobytes().replace(b'"form": 2', b'"form": 1'), np.uint8),
    )
    with pytest.raises(PeerError, match="form 1: submerge before 28 November 2026 wrote it; load"):
        loads(first)


def test_a_block_size_that_was_cut_is_saved_as_it_runs():
    """The low-rank path takes fewer rows at once than were given; the restored engine, as many."""
    X = rows_of("decaying", 300, 70, seed=0)
    engine = SAPCA(3, block_size=200, exact="never").partial_fit(X[:170])
    restored = loads(dumps(engine))

    assert 200 > engine.block_size == restored.block_size
    assert dumps(engine) == dumps(restored)
    assert dumps(engine.partial_fit(X[170:])) == dumps(restored.partial_fit(X[170:]))


def test_float32_rows_that_an_earlier_version_kept_in_float64_go_on_in_float64():
    """No bit of them is lost."""
    X = rows_of("decaying", 60, 6, seed=0) + 1e4
    engine = SAPCA(2, block_size=40).partial_fit(X[:50])
    single = loads(
        changed(
            dumps(engine),
            about=lambda a: np.frombuffer(a.tobytes().replace(b"float64", b"float32"), np.uint8),
        )
    )

    assert single.dtype == np.float32
    single.partial_fit(X[50:])
    assert engine.partial_fit(X[50:]).subspace.sigma.tobytes() == single.subspace.sigma.tobytes()
    assert dumps(loads(dumps(single))) == dumps(single)


def test_a_later_form_says_what_to_do():
    """The error distinguishes a newer file from a broken one."""
    later = changed(
        GOOD,
        about=lambda a: np.frombuffer(a.tobytes().replace(b'"form": 2', b'"form": 9'), np.uint8),
    )
    with pytest.raises(PeerError, match="form 9: update submerge"):
        loads(later)


@pytest.mark.slow
def test_a_flipped_bit_of_any_byte_is_refused_or_harmless():
    """The zip's checksums find it, or the place has no meaning."""
    refused = 0
    for place in range(len(GOOD)):
        damaged = bytearray(GOOD)
        damaged[place] ^= 1 << place * 3 % 8
        try:
            assert dumps(loads(bytes(damaged))) == GOOD
        except PeerError:
            refused += 1
    assert refused > 0.75 * len(GOOD)


@pytest.mark.parametrize("length", range(0, len(GOOD), len(GOOD) // 11))
def test_every_torn_length_is_refused(length):
    """A file cut short anywhere is not an engine."""
    with pytest.raises(PeerError):
        loads(GOOD[:length])


def zipped(entries: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as out:
        for name, data in entries.items():
            out.writestr(f"{name}.npy", data)
    return file.getvalue()


def npy(shape: str, data: bytes = b"", descr: str = "'<f8'") -> bytes:
    """An array that claims a shape, whatever data follow."""
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}".encode()
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + data


ENGINES = {
    "low rank": GOOD,
    "scatter": dumps(SAPCA(2).partial_fit(rows_of("noise", 30, 6, seed=0))),
    "float32": dumps(SAPCA(2, exact="never", dtype="float32").partial_fit(np.eye(9))),
    "nothing": dumps(SAPCA(EnergyRank(0.5, 0.9, start=2, highest=4))),
}


def refused_or_usable(data: bytes) -> bool:
    """Whether bytes are an engine, which then learns; anything but the documented error passes."""
    try:
        engine = loads(data)
    except PeerError:
        return False
    dumps(engine)
    return True


@given(st.binary(max_size=400))
def test_any_bytes_are_refused_by_the_documented_error(data):
    """Noise, and noise that begins like a file."""
    for front in (b"", b"PK\x03\x04", b"\x93NUMPY\x01\x00", GOOD[:300]):
        assert not refused_or_usable(front + data)


def damaged_engine(good: bytes, rng: np.random.Generator) -> bytes:
    """A saved engine with some bytes changed, moved or missing, under checksums that are right."""
    with zipfile.ZipFile(io.BytesIO(good)) as file:
        entries = {name[:-4]: bytearray(file.read(name)) for name in file.namelist()}
    for _ in range(int(rng.integers(1, 4))):
        entry = entries[str(rng.choice(sorted(entries)))]
        at = int(rng.integers(len(entry)))
        match int(rng.integers(6)):
            case 0:
                entry[at:] = b""
            case 1:
                entry[at:at] = entry[at : at + int(rng.integers(1, 30))]
            case 2 if at + 8 <= len(entry):
                extreme = rng.choice([1e308, -1e308, np.nan, np.inf, 5e-324, -1.0, 1e160])
                start = at - at % 8
                entry[start : start + 8] = struct.pack("<d", extreme)[: len(entry) - start]
            case 3:
                entry[at] = int(rng.choice(list(b"0123456789-\"'[]{}(),")))
            case 4:
                entries[str(rng.choice(sorted(entries)))] = bytearray(entry)
            case _:
                entry[at] ^= 1 << int(rng.integers(8))
        entry += b"" if len(entry) else b"\0"
    return zipped({name: bytes(data) for name, data in entries.items()})


@pytest.mark.parametrize("name", ENGINES)
def test_damage_is_refused_by_the_documented_error_or_harmless(name):
    """Each entry in turn, beneath the zip's checksum; and the bytes of the zip itself."""
    rng, usable = np.random.default_rng(0), 0
    for _ in range(150):
        usable += refused_or_usable(damaged_engine(ENGINES[name], rng))
        outer = bytearray(ENGINES[name])
        for _ in range(int(rng.integers(1, 5))):
            outer[int(rng.integers(len(outer)))] ^= 1 << int(rng.integers(8))
        refused_or_usable(bytes(outer))

    assert usable < 150


@pytest.mark.soak
@pytest.mark.parametrize("name", ENGINES)
def test_much_damage_is_refused_by_the_documented_error(name):
    """The same for longer."""
    rng = np.random.default_rng(1)
    for _ in range(3000):
        refused_or_usable(damaged_engine(ENGINES[name], rng))


ABOUT = npy("(2,)", b"{}", "'|u1'")


@pytest.mark.parametrize(
    "data",
    [
        zipped({"about": ABOUT, "mean": npy(f"({2**40},)")}),
        zipped({"about": ABOUT, "mean": npy(f"({2**70}, 0)")}),
        zipped({"about": ABOUT, "mean": npy("(-1, -1)", bytes(8))}),
        zipped({"about": ABOUT, "mean": npy("(1,)", b"", f"'S{2**31 - 1}'")}),
        zipped({"about": ABOUT, "mean": npy("(1,)", bytes(8), "'|O'")}),
        zipped({"about": ABOUT, "mean": npy("(1,)", bytes(8), "[('a', '<f8')]")}),
        zipped({"about": ABOUT, "mean": npy("(" * 300 + "1," + ")" * 300, bytes(8))}),
        zipped({"about": npy(f"({2**26},)", bytes(2**26), "'|u1'")}, zipfile.ZIP_DEFLATED),
        zipped({"about": npy("(20000,)", b"[" * 20000, "'|u1'")}),
        zipped({"about": npy("(9000,)", b'{"form":' + b"9" * 8991 + b"}", "'|u1'")}),
        zipped({"about": ABOUT, "else": ABOUT}),
        about(block_size=2**20, schema=Schema.anonymous(2000).canonical.decode()),
    ],
)
def test_a_claim_costs_no_more_memory_than_the_file_has(data):
    """Headers that claim terabytes, compressed zeros, nesting and numbers without end."""
    tracemalloc.start()
    try:
        with pytest.raises(PeerError):
            loads(data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < 4 * len(data) + (2 << 20)  # Python 3.14 takes one MiB to refuse deep nesting


def test_a_small_file_cannot_ask_for_a_large_memory():
    """A block of a million rows for a thousand columns, in a file of sixteen kilobytes."""
    wide = dumps(SAPCA(2, exact="never", block_size=4).partial_fit(np.eye(3, 1000)))
    forged = changed(
        wide,
        about=lambda a: np.frombuffer(
            json.dumps(json.loads(a.tobytes()) | {"block_size": 2**20}).encode(), np.uint8
        ),
    )

    with pytest.raises(PeerError, match="at most"):
        loads(forged)
