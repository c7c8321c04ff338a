"""score_on(): scores of files, each written by the worker that reads it. There are as many scores
as rows: they do not travel. Each FILE has a file of scores in a folder that all workers can write
to, with the bytes that `submerge score FILE` writes on one machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from submerge import UsageError
from submerge_bridges.on_dask.cluster import Call, Cluster, answering
from submerge_files.model_file import bytes_of
from submerge_files.reader.formats.remote_path import SCHEME, path_of
from submerge_files.score.model import of_bytes
from submerge_files.score.output import check_target
from submerge_files.score.run import ScoreOrder, check_scored
from submerge_files.score.summary import ScoreSummary


@answering
def write(
    order: ScoreOrder, model: Path, data: bytes, target: str
) -> tuple[ScoreSummary, list[str]]:
    """Score one file by a model file with that data, and write the scores; return remarks, too."""
    normal, place = of_bytes(data, model, order.rank), path_of(target)
    if SCHEME not in target:
        check_target(place, inputs=order.files)
    summary, remarks = order.carried_out(normal, place, needed=False)
    return summary, [*remarks]


def score_on(
    cluster: Cluster,
    order: ScoreOrder,
    model: Path,
    folder: str,
    advance: Callable[[int], None] = lambda _: None,
) -> tuple[ScoreSummary, Iterable[str]]:
    """Score files by a model file; return the summary of all, and remarks."""
    data = bytes_of(model)
    normal = of_bytes(data, model, order.rank)
    targets = targets_of(order, folder)
    shared = cluster.share(data)
    calls = [
        Call((replace(order, files=(path,)), model, shared, target))
        for path, target in zip(order.files, targets, strict=True)
    ]
    summary, remarks = ScoreSummary(normal), dict[str, None]()
    for counted, said in cluster.answers(write, calls):
        summary.take(counted)
        remarks |= dict.fromkeys(said)
        advance(counted.rows)
    check_scored(summary, order.when, normal)
    return summary, remarks


def targets_of(order: ScoreOrder, folder: str) -> Sequence[str]:
    """Return where the scores of each file go."""
    if SCHEME not in folder and not Path(folder).is_dir():
        raise UsageError(
            f"expected a folder for the scores (-o), got {folder!r}: with --dask each FILE has a"
            " file of scores there; make it where all workers can write"
        )
    ending = "scores.jsonl.gz" if order.as_json else "scores.csv.gz"
    found: dict[str, Path] = {}
    for path in order.files:
        name = f"{path.name.split('.')[0]}.{ending}"
        if name in found:
            raise UsageError(
                f"expected files of different names, got {found[name]} and {path}, whose scores"
                f" would both be {name}: score them one after another"
            )
        found[name] = path
    return [f"{folder.rstrip('/')}/{name}" for name in found]
