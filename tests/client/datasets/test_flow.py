"""Flow: a file in blocks is the file, in the memory of a block."""

from __future__ import annotations

import gzip
import io
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from submerge import UsageError
from submerge_client.datasets import Flow, text


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("flow")


def whole(flow: Flow, used: list[int] | None = None) -> np.ndarray:
    return np.concatenate(list(flow.blocks(used or list(range(len(flow.names))))))


rows = st.lists(
    st.lists(st.sampled_from(["1", "2.5", '"3"', "NA", "-4e2"]), min_size=3, max_size=3)
    | st.just([""]),
    min_size=1,
    max_size=3 * text.BLOCK,
).filter(lambda rows: [""] != rows[0])


@settings(max_examples=20)
@given(rows=rows, used=st.permutations([0, 1, 2]), most=st.integers(1, 3))
def test_blocks_are_the_file(folder, rows, used, most) -> None:
    """Gaps, quotes and blank lines, wherever a block ends: the columns asked for, as asked."""
    path = folder / "some.csv"
    path.write_text("a,b,c\n" + "".join(",".join(row) + "\n" for row in rows))
    values = {"NA": math.nan}
    kept = [row for row in rows if row != [""]]
    expected = [[values.get(x) or float(x.strip('"')) for x in row] for row in kept]

    got = whole(Flow.of(path), used[:most])

    np.testing.assert_array_equal(np.array(expected)[:, used[:most]], got)


def test_a_field_in_quotes_may_run_over_the_end_of_a_block(file) -> None:
    """A line end inside quotes is no row's end, in whatever block it stands."""
    lines = ["x,y,remark"] + ["1,2,fine"] * (text.BLOCK - 1) + ['3,4,"not\nfine\n"', "5,6,fine"]

    got = whole(Flow.of(file("a.csv", "\n".join(lines))), [1, 0])

    np.testing.assert_array_equal([[2, 1], [4, 3], [6, 5]], got[[0, -2, -1]])
    assert len(got) == text.BLOCK + 1


def test_a_row_too_long_is_refused_though_its_columns_are_there(file) -> None:
    """Fields beyond the header mean that the columns are not what they seem."""
    path = file("a.csv", "a,b,c\n1,2,3\n1,2,3,4\n")

    for choose in (lambda: whole(Flow.of(path), [0, 1]), lambda: whole(Flow.of(path))):
        with pytest.raises(
            UsageError, match=r"a.csv, line 3: expected 3 fields as in line 1, got 4"
        ):
            choose()


def test_an_error_in_a_later_block_has_its_line(file) -> None:
    """Lines are counted over all blocks, blank ones and the header with them."""
    path = file("a.dat", "a b\n\n" + "1 2\n" * 2000 + "1 x\n")

    with pytest.raises(UsageError, match=r"a.dat, line 2003, column 2 \(b\): expected a number"):
        whole(Flow.of(path))


def test_many_blank_lines_are_no_rows(file) -> None:
    """A block of nothing else is passed over, without a warning."""
    path = file("a.dat", "1 2\n" + "\n" * (3 * text.BLOCK) + "3 4\n")

    np.testing.assert_array_equal([[1, 2], [3, 4]], whole(Flow.of(path)))


def test_a_damaged_gzip_is_called_that_when_it_is_reached(file) -> None:
    """Not the wrong number that comes of it."""
    packed = gzip.compress(b"".join(b"%d %d\n" % (i * 7919 % 10007, i) for i in range(5000)))
    middle = len(packed) * 3 // 4
    bad = packed[:middle] + bytes([packed[middle] ^ 0xFF]) + packed[middle + 1 :]

    with pytest.raises(UsageError, match=r"x.gz: expected a whole gzip file, got a damaged one"):
        whole(Flow.of(file("x.gz", bad)))


@pytest.mark.parametrize("packed", [False, True])
def test_a_matrix_of_numpy_flows_as_well(file, packed) -> None:
    """Block by block, or at once if it is packed."""
    stored = io.BytesIO()
    np.save(stored, np.arange(12.0).reshape(6, 2))
    content = gzip.compress(stored.getvalue()) if packed else stored.getvalue()

    np.testing.assert_array_equal([[1], [3]], whole(Flow.of(file("a.npy", content)), [1])[:2])


def test_a_file_without_names_says_so(file) -> None:
    """Its columns are called by number."""
    flow = Flow.of(file("a.dat", "1 2\n"))

    assert (("x0", "x1"), False) == (flow.names, flow.named)


# A process of its own: threads of other tests, too, would be counted.
PEAKS = """
import sys, tracemalloc
from pathlib import Path
from submerge_client.datasets import Flow
for path in map(Path, sys.argv[1:]):
    tracemalloc.start()
    rows = sum(len(block) for block in Flow.of(path).blocks(list(range(10))))
    print(rows, tracemalloc.get_traced_memory()[1])
    tracemalloc.stop()
"""


@pytest.mark.slow
@pytest.mark.parametrize("ends", [pytest.param("csv", marks=pytest.mark.soak), "csv.gz"])
def test_memory_does_not_grow_with_the_file(file, ends) -> None:
    """Ten times as many rows take as much memory as some blocks of them do."""
    counts = 5_000, 5_000, 50_000  # the first loads what is imported late
    contents = [("1.25," * 9 + "NA\n").encode() * n for n in counts]
    if ends == "csv.gz":
        contents = [gzip.compress(content, 1) for content in contents]
    paths = [file(f"{k}.{ends}", content) for k, content in enumerate(contents)]

    ran = subprocess.run(
        [sys.executable, "-c", PEAKS, *paths], capture_output=True, text=True, check=True
    )
    rows, peaks = zip(*(map(int, line.split()) for line in ran.stdout.splitlines()), strict=True)

    assert counts == rows
    assert peaks[2] < 1.2 * peaks[1]
