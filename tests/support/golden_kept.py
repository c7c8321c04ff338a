"""Golden files of what nodes keep: `tests/golden/kept`.

    PYTHONPATH=tests python -m support.golden_kept --write

writes those down that are not there yet, and never another: a checkpoint, a store or an engine
that was written once is read for ever. Beside each stands a text that says what is in it,
record by record, by the numbers of fields: it does not change when names do.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import cache, partial
from pathlib import Path
from typing import Any
from unittest import mock

from submerge.protocol.machine import Keep
from submerge_aggregator.store import Store
from submerge_client.checkpoint import CheckpointFile, RecordStore
from submerge_proto.kept import records
from submerge_proto.wire import parts
from support import (
    golden_aggregator,
    golden_by_hand,
    golden_client,
    golden_engines,
    golden_learnt,
)
from support.field_numbers import listed

FOLDER = Path(__file__).parents[1] / "golden" / "kept"
SOFTWARE = "submerge 0.1.0"
"""Headers name the software: here, the one that wrote these files first."""

Key = tuple[str, ...]

CHECKPOINTS: dict[str, Callable[[], dict[Key, Any]]] = {
    "client_linear.checkpoint": golden_client.of_a_linear_group,
    "client_narrow.checkpoint": golden_client.of_a_narrow_group,
    "client_factors.checkpoint": golden_client.of_a_group_with_factors,
    "client_average.checkpoint": golden_client.of_a_moving_average,
    "client_blocks.checkpoint": golden_client.of_blocks,
    "client_looks.checkpoint": golden_client.of_looks,
    "client_states.checkpoint": golden_client.of_two_states,
    "client_jumps.checkpoint": golden_client.of_jumps,
    "client_repeated.checkpoint": golden_client.of_what_comes_back,
    "client_rank.checkpoint": golden_client.of_a_group_with_a_rank,
    "client_noise.checkpoint": golden_client.of_a_group_with_noise,
    "client_kernel.checkpoint": golden_client.of_a_kernel_group,
    "client_level.checkpoint": golden_client.of_a_level,
    "client_drill.checkpoint": golden_client.of_a_drill,
    "client_scaling.checkpoint": golden_client.while_the_scaling_is_worked_out,
    "client_gamma.checkpoint": golden_client.while_gamma_is_worked_out,
    "client_measured.checkpoint": golden_client.with_readings_that_were_measured,
    "client_measured_schema.checkpoint": golden_client.with_readings_of_a_named_schema,
}

STORES: dict[str, Callable[[], dict[Key, Any]]] = {
    "site.store": golden_aggregator.of_a_site,
    "root.store": golden_aggregator.of_a_root,
    "root_ages.store": golden_aggregator.of_ages,
    "root_histories.store": golden_aggregator.of_histories,
    "root_rows.store": golden_aggregator.of_rows,
    "root_looks.store": golden_aggregator.of_looks,
    "root_missed.store": golden_aggregator.of_missed,
    "root_noise.store": golden_aggregator.of_noise,
    "root_records.store": golden_aggregator.of_records,
    "root_received.store": golden_aggregator.of_records_as_received,
}

ENGINES = golden_engines.ENGINES

BY_HAND: dict[str, Callable[[], bytes]] = {
    "alarms.journal": golden_by_hand.journal,
    **{name: partial(golden_learnt.written, name) for name in golden_learnt.LEARNT},
}
"""Files with no text beside them: one is text, and tests compare the others field by field."""


def of_that_version() -> Any:
    """Have what is packed meanwhile name the software that wrote the golden files."""
    return mock.patch.object(parts, "SOFTWARE", SOFTWARE)


def packed(kept: Mapping[Key, Any]) -> dict[Key, bytes]:
    """Return records as bytes; a message is written as it stands."""
    with of_that_version():
        return {
            key: record.SerializeToString()
            if hasattr(record, "SerializeToString")
            else records.pack(key, record)
            for key, record in kept.items()
        }


def message_of(key: Key, data: bytes) -> Any:
    """Return the protobuf message that a record is."""
    return records._form(key).message.FromString(data)


def name_of(key: Key) -> str:
    """Return a key as one word."""
    return "/".join(key)


def text_of(kept: Mapping[Key, bytes]) -> dict[str, Any]:
    """Return what records say, by the numbers of fields."""
    return {name_of(key): listed(message_of(key, data)) for key, data in sorted(kept.items())}


def write_checkpoint(path: Path, kept: Mapping[Key, bytes]) -> None:
    """Write a client's checkpoint, as a client does."""
    with closing(RecordStore(CheckpointFile(path))) as store:
        store.keep(Keep({key: records.unpack(key, data) for key, data in kept.items()}))


def write_store(path: Path, kept: Mapping[Key, bytes]) -> None:
    """Write an aggregator's store, as an aggregator does."""
    with closing(Store(path)) as store:
        store.write(kept)


@cache
def read(name: str) -> Mapping[Key, bytes]:
    """Return the records of a golden checkpoint or store, as programs load them."""
    with tempfile.TemporaryDirectory() as folder:
        # A copy: who opens a store changes it.
        path = shutil.copy(FOLDER / name, folder)
        with closing(CheckpointFile(path) if name in CHECKPOINTS else Store(path)) as file:
            kept = file.load()
            notes = getattr(file, "notes", [])
    if notes:
        raise AssertionError(f"{name} is not whole: {notes}")
    return kept


def records_of(name: str) -> dict[Key, Any]:
    """Return what a golden checkpoint or store is to hold, built by hand."""
    return (CHECKPOINTS | STORES)[name]()


def _write(name: str, path: Path) -> Any:
    """Write one golden file; return what the text beside it says."""
    kept = packed(records_of(name))
    if name in CHECKPOINTS:
        with of_that_version():
            write_checkpoint(path, kept)
    else:
        write_store(path, kept)
    return text_of(kept)


def write() -> list[str]:
    """Write those that are not there; return their names."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    names = (*CHECKPOINTS, *STORES, *BY_HAND)
    new = [name for name in names if not (FOLDER / name).exists()]
    for name in new:
        if name in BY_HAND:
            with of_that_version():
                (FOLDER / name).write_bytes(BY_HAND[name]())
            continue
        with tempfile.TemporaryDirectory() as folder:
            beside = Path(folder, name)
            text = json.dumps(_write(name, beside), indent=1, ensure_ascii=False)
            (FOLDER / name).write_bytes(beside.read_bytes())
        (FOLDER / f"{name}.json").write_text(text + "\n", encoding="utf-8")
    return new


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", required=True)
    parser.parse_args()
    sys.stdout.write("".join(f"written: {name}\n" for name in write()))
