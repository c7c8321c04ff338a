"""Scoring as a stream: files in, scored blocks out. Each file is a node of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from submerge.condition import Condition
from submerge.errors import UsageError
from submerge.history.detection import ByModel, RowJudge
from submerge.judge.prepare import Block, none_left
from submerge_files.console.reading_options import condition_of, in_states, reading_options
from submerge_files.reader import ReadingOptions
from submerge_files.reader.formats.remote_path import is_remote, path_of, source_of
from submerge_files.reader.paths import files_of
from submerge_files.score import output
from submerge_files.score.mean import Mean, Means, level_of, level_warning, parsed
from submerge_files.score.model import Normal
from submerge_files.score.node_file import NodeFile, NodeRows, open_node
from submerge_files.score.summary import ScoreSummary
from submerge_files.workers import Advance, Task, Workers

if TYPE_CHECKING:
    from submerge_files.score.plot import ScoreCurves

Rows = Callable[..., Iterator[NodeRows]]


@dataclass(frozen=True)
class ScoreRequest:
    """What `submerge score` is asked for; `--help` describes each option."""

    normal: Normal
    files: tuple[Path, ...] = ()
    # None: the model's, or if center = "own" that of each machine or file; else as `Mean`
    mean: Mean | None = None
    # only rows for which it holds have scores, as those in `reading.states`
    when: Condition | None = None
    reading: ReadingOptions = field(default_factory=ReadingOptions)
    keep: tuple[str, ...] = ()  # columns that come along
    allow_missing: bool = False  # whether a channel without a column is a gap in every row
    as_json: bool = False
    remembered: str = ""

    @classmethod
    def of(
        cls,
        normal: Normal,
        files: Sequence[Path],
        *,
        mean: str | None = None,
        when: str | None = None,
        keep: tuple[str, ...] = (),
        allow_missing: bool = False,
        as_json: bool = False,
        **reading: Any,
    ) -> ScoreRequest:
        """Return what options of a command line ask for."""
        options, condition, remembered = chosen_rows(normal, reading_options(**reading), when)
        about, kept = None if mean is None else parsed(mean), tuple(dict.fromkeys(keep))
        given = (*files,), about, condition, options, kept, allow_missing, as_json, remembered
        return cls(normal, *given)

    def opened(self, path: Path) -> NodeFile:
        """Open one file and find the channels of the model in it."""
        file = open_node(
            *(path, self.normal.schema, self.reading, self.keep),
            allow_missing=self.allow_missing,
            remembered=self.remembered,
        )
        if self.when is not None and file.columns.lags == 1:
            placed, holds = file.columns.placed, self.when.holds
            file.recordings.note_only(lambda rows: holds(placed(rows)))
        return file

    def form(self, target: Path | None) -> output.ScoreForm:
        """Look at all files before the work, and return how their scores are written."""
        normal, timed = self.normal, [self.opened(path).timed for path in self.files]
        headings = output.ScoreHeadings(
            normal.schema.names,
            kernel=len(normal.summary.parts) > 1,
            factors=bool(normal.factors),
            alarms=normal.watched,
            timed=any(timed),
            kept=self.keep,
        )
        if target is not None and target.suffix == output.SUFFIX:
            if self.as_json:
                raise UsageError(
                    f"--json writes lines of JSON, got {target}: leave one of the two out"
                )
            return output.ParquetScores(headings)
        if target is not None and not self.as_json and target.suffix in (".json", ".jsonl"):
            raise UsageError(f"{target} would hold CSV: give --json, or name it .csv")
        if self.as_json:
            return output.JsonScoreLines(normal.schema, headings)
        return output.CsvScoreLines(headings)

    def check(self, summary: ScoreSummary) -> None:
        """Refuse files of which no row has a score."""
        if not summary.scored:
            none = none_left(summary.rows, summary.reasons, self.when)
            raise UsageError(f"expected rows that can be scored, got {none}")


def all_files(paths: Sequence[Path], *, note: Callable[[str], None] = lambda _: None) -> list[Path]:
    """Return the files that paths mean: folders and globs too. One named twice is read twice."""
    meant = [files_of([path]) for path in paths]
    for said in dict.fromkeys(said for each in meant for said in each.notes):
        note(said)
    found = [file for each in meant for file in each.files]
    for path in found:
        source_of(path)  # refuses a missing file before hours of work on others
    return found


def chosen_rows(
    normal: Normal, reading: ReadingOptions, when: str | None
) -> tuple[ReadingOptions, Condition | None, str]:
    """Return how files are read, which rows count, and the condition if it is the model's own."""
    remembered = normal.learnt.when if when is None and normal.learnt is not None else ""
    options, rest = in_states(reading, when or remembered or None)
    return options, condition_of(rest, normal.schema.names), remembered


def score(
    wanted: ScoreRequest,
    *,
    note: Callable[[str], None],
    warn: Callable[[str], None] = lambda _: None,
    advance: Advance = lambda _: None,
) -> Iterator[output.FileRows]:
    """Score all rows of all files, a block at a time."""
    # Warnings, unlike notes, say that scores may not mean what they seem to.
    normal, far = wanted.normal, dict[Path, tuple[float, str]]()
    means = Means(normal, wanted.mean, note)
    for path in wanted.files:
        file = wanted.opened(path)
        for remark in file.notes:
            note(remark)

        def rows(most: int | None = None, file: NodeFile = file) -> Iterator[NodeRows]:
            for part in file.rows(normal.schema, most):
                advance(len(part.unscored))
                yield part

        def blocks(most: int | None, rows: Rows = rows) -> Iterable[Block]:
            judge = RowJudge(ByModel(normal.scorer), wanted.when)
            return (judge.prepare(part.rows, judges=False) for part in rows(most))

        scorer, from_elsewhere = means.of(path, blocks)
        judge = RowJudge(ByModel(scorer, means.watch(path)), wanted.when)
        level = level_of(normal, scorer)
        for part in rows():
            judged = judge.judge(judge.prepare(part.rows, part.unscored), part.recorded.first)
            if from_elsewhere:
                level.add(part.rows[judged.block.why[part.unscored == 0] == 0])
            yield output.FileRows(file, part.recorded, judged)
        for remark in file.notes:
            note(remark)
        off = level.far
        if off[0]:
            far[path] = off
    if far:
        warn(level_warning(far, len(wanted.files), normal.schema))


def written_scores(
    wanted: ScoreRequest,
    target: Path | None,
    *,
    part: bool = False,
    curves: ScoreCurves | None = None,
    advance: Advance = lambda _: None,
) -> tuple[ScoreSummary, dict[str, None]]:
    """Score files, or a `part` of them, a line for each row; return the summary, and remarks."""
    form, normal = wanted.form(target), wanted.normal
    summary, remarks = ScoreSummary(normal), dict.fromkeys(f"note: {n}" for n in normal.notes)

    def note(text: str) -> None:
        remarks.setdefault(f"note: {text}")

    def warn(text: str) -> None:
        remarks.setdefault(f"warning: {text}")

    with output.open_output(target, form) as write:
        for some in score(wanted, note=note, warn=warn, advance=advance):
            write(some)
            summary.add(some)
            if curves is not None:
                curves.add(some)
        if not part:
            # Raised here, so that older scores are not overwritten.
            wanted.check(summary)
    return summary, remarks


def score_apart(
    workers: Workers, wanted: ScoreRequest, folder: str, advance: Advance = lambda _: None
) -> tuple[ScoreSummary, dict[str, None]]:
    """Let workers score files, each into a file in a folder: scores do not travel."""
    summary, remarks = ScoreSummary(wanted.normal), dict[str, None]()
    tasks = [Task(each) for each in zip(wanted.files, targets_of(wanted, folder), strict=True)]
    for counted, said in workers.map(partial(_scored_file, wanted), tasks):
        summary.take(counted)
        remarks |= said
        advance(counted.rows)
    wanted.check(summary)
    return summary, remarks


def _scored_file(
    wanted: ScoreRequest, file: Path, target: str
) -> tuple[ScoreSummary, dict[str, None]]:
    """Score one file, and write the scores; return the summary, and remarks."""
    place = path_of(target)
    if not is_remote(place):
        output.check_target(place, inputs=[file])
    return written_scores(replace(wanted, files=(file,)), place, part=True)


def targets_of(wanted: ScoreRequest, folder: str) -> Sequence[str]:
    """Return where the scores of each file go."""
    if not is_remote(path_of(folder)) and not Path(folder).is_dir():
        raise UsageError(
            f"expected a folder for the scores (-o), got {folder!r}: with --dask each FILE has a"
            " file of scores there; make it where all workers can write"
        )
    ending = "scores.jsonl.gz" if wanted.as_json else "scores.csv.gz"
    found: dict[str, Path] = {}
    for path in wanted.files:
        name = f"{path.name.split('.')[0]}.{ending}"
        if name in found:
            raise UsageError(
                f"expected files of different names, got {found[name]} and {path}, whose scores"
                f" would both be {name}: score them one after another"
            )
        found[name] = path
    return [f"{folder.rstrip('/')}/{name}" for name in found]
