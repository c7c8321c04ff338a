"""A cluster without a network: tasks run here, one after another, and in any order."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from submerge.history.detection import watching
from submerge.history.fit import Fitted, fit, fit_rows
from submerge.history.settings import FitSettings
from submerge_bridges.on_dask.cluster import answer_of, run
from submerge_files.fit.apart import RowsApart
from submerge_files.model_file import learnt_of
from submerge_files.reader import Recordings
from submerge_files.workers import Task
from submerge_proto.files import learnt as learnt_file


class WorkersHere:
    """Stands where `Cluster` does; each answer is lost once in a while, and made again."""

    def __init__(self, seed: int = 0) -> None:
        self._random = random.Random(seed)  # noqa: S311 - an order
        self.tasks = 0

    def value(self, partition: Any) -> Any:
        return partition.compute(scheduler="synchronous")

    def map(
        self,
        function: Callable[..., Any],
        tasks: Sequence[Task],
        advance: Callable[[int], None] = lambda _: None,
    ) -> Iterator[Any]:
        order = list(range(len(tasks)))
        self._random.shuffle(order)
        found = {}
        for place in order:
            self.tasks += 1
            # As another process would have them: a function by its name, and values.
            sent = pickle.dumps((function, [*map(self._argument, tasks[place].arguments)]))
            for _ in range(1 + (self._random.random() < 0.2)):
                asked, arguments = pickle.loads(sent)  # noqa: S301 - our own
                answer = pickle.dumps(run(asked, *arguments))
                found[place] = pickle.loads(answer)  # noqa: S301 - our own
            advance(tasks[place].rows)
        yield from (answer_of(found[place]) for place in range(len(tasks)))

    def _argument(self, value: Any) -> Any:
        return self.value(value) if hasattr(value, "__dask_graph__") else value


def plain(recordings: Recordings, settings: FitSettings) -> Fitted:
    """Return what one machine learns."""
    look = lambda: recordings.looks(settings.when)  # noqa: E731
    return fit(recordings.rows, recordings.channels, settings, look=look)


def on_workers(
    recordings: Recordings,
    settings: FitSettings,
    cluster: Any,
    advance: Callable[[int], None] = lambda _: None,
) -> Fitted:
    """Return what a cluster learns."""
    rows = RowsApart(cluster, recordings.pieces(), advance)
    return fit_rows(rows, recordings.channels, settings)


def assert_alike(one: Fitted, other: Fitted, within: float = 1e-9) -> None:
    """The same rows were learnt: numbers are equal to a share of the largest of their kind."""
    assert [each.key for each in one.chunks] == [each.key for each in other.chunks]
    assert one.folds.rank == other.folds.rank
    assert one.folds.schema.names == other.folds.schema.names
    assert one.first.left_out == other.first.left_out
    assert one.states.keys() == other.states.keys()
    limits = [watching(learnt_of(each)).limits.known for each in (one, other)]
    assert limits[0].keys() == limits[1].keys()
    for a, b in (
        (one.scatter.scatter, other.scatter.scatter),
        (one.folds.moments.mean, other.folds.moments.mean),
        (one.folds.moments.variance, other.folds.moments.variance),
        *((limits[0][kind], limits[1][kind]) for kind in limits[0]),
    ):
        np.testing.assert_allclose(a, b, rtol=within, atol=within * np.abs(a).max())


def file_bytes(fitted: Fitted) -> bytes:
    """Return the model file of what was learnt."""
    return learnt_file.packed(learnt_of(fitted))
