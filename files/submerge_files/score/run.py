"""Scoring as a stream: files in, scored blocks and their summary out. Each file is a node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from submerge import Array
from submerge.condition import Condition
from submerge.errors import UsageError
from submerge.history.detection import ByModel, JudgedRows, RowJudge
from submerge.judge.prepare import REASONS, Block, none_left
from submerge.judge.score import RowScores
from submerge_client.score_outputs.lines import limits_passed
from submerge_files.console.reading_options import condition_of, in_states, reading_options
from submerge_files.console.units import printable
from submerge_files.reader import ReadingOptions
from submerge_files.reader.formats.remote_path import is_remote, path_of, source_of
from submerge_files.reader.paths import files_of
from submerge_files.score import output
from submerge_files.score.model import Mean, Means, Normal, level_of, level_warning, parsed
from submerge_files.score.node_file import NodeFile, NodeRows, open_node
from submerge_files.score.output import FileRows
from submerge_files.workers import Advance, Task, Workers

if TYPE_CHECKING:
    from submerge_files.score.plot import ScoreCurves

MOST_ANOMALOUS = 5  # rows that the summary lists
HIGH = 0.99  # the limit above which rows count for the list of first channels

MOST_CHANNELS = 8


@dataclass(order=True)
class AnomalousRow:
    """One row; rows compare by score, and among equal ones the first is the highest."""

    rank: float
    order: int
    path: Path = field(compare=False)
    row: int = field(compare=False)
    text: str = field(compare=False, default="")


class ScoreSummary:
    def __init__(self, normal: Normal) -> None:
        self._normal, self._names = normal, normal.schema.names
        self.rows = self.scored = 0
        self._files: dict[Path, None] = {}
        self._why: Counter[str] = Counter()
        self._over: dict[str, Counter[float]] = {}
        self._first: Counter[str] = Counter()
        self._filled = 0
        self._most_anomalous: list[AnomalousRow] = []

    def add(self, part: FileRows) -> None:
        """Count some rows of a file."""
        scores, (top, shares) = part.judged.scores, part.judged.top
        self._files[part.path] = None
        self.rows += len(part.why)
        self._why.update(REASONS[why] for why in part.why.tolist() if why)
        self._filled += int((part.judged.filled > 0).sum())
        for name, over in _over(scores).items():
            self._over.setdefault(name, Counter()).update(over[over > 0].tolist())
        if top.shape[1]:
            blamed = (_main_over(scores) >= HIGH) & (shares[:, 0] > 0)
            self._first.update(self._names[j] for j in top[blamed, 0].tolist())
        self._compare(part)
        self.scored += len(scores.spe)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the model: who takes this in has it."""
        return {name: value for name, value in self.__dict__.items() if name != "_normal"}

    def take(self, later: ScoreSummary) -> None:
        """Take in what was counted of later rows."""
        self._keep(replace(each, order=each.order - self.scored) for each in later._most_anomalous)
        self._files |= later._files
        self.rows += later.rows
        self.scored += later.scored
        self._why.update(later._why)
        for name, counts in later._over.items():
            self._over.setdefault(name, Counter()).update(counts)
        self._first.update(later._first)
        self._filled += later._filled

    @property
    def reasons(self) -> dict[str, int]:
        """How many rows have no score, by reason."""
        return {why: self._why[why] for why in REASONS if self._why[why]}

    @property
    def counts(self) -> str:
        """How many rows there were, and how many of them are scored."""
        of = f" of {len(self._files)} files" if len(self._files) > 1 else ""
        counts = [f"{self.scored:,} scored"]
        counts += [f"{n:,} not ({why})" for why, n in self.reasons.items()]
        counts += [f"{self._filled:,} with gaps filled"] if self._filled else []
        return f"{self.rows:,}{of}: {', '.join(counts)}"

    def text(self) -> list[tuple[str, str]]:
        """Return the summary as text: names and values."""
        lines = [
            ("model", f"{self._normal.about}; rank {self._normal.shown.rule.start}"),
            ("rows", self.counts),
        ]
        limits, several = self._normal.limits, len(self._files) > 1
        if limits is not None:
            shares = [share for share in limits.shares if share > 0.5]
            for name, counter in self._over.items():
                # A row is counted at its highest limit, and is above the lower ones too.
                above = [sum(n for at, n in counter.items() if at >= share) for share in shares]
                counts = [
                    f"{100 * share:.4g} %: {n:,} ({n / max(self.scored, 1):.2%})"
                    for share, n in zip(shares, above, strict=True)
                ]
                lines.append((f"{name} above", ", ".join(counts)))
        lines += [
            (
                "highest" if i == 0 else "",
                f"row {entry.row}{f' of {printable(str(entry.path))}' * several}: {entry.text}",
            )
            for i, entry in enumerate(self._most_anomalous)
        ]
        if self._first:
            names = ", ".join(
                f"{printable(name)} {count:,}"
                for name, count in self._first.most_common(MOST_CHANNELS)
            )
            lines.append(("channels", f"first in rows above {100 * HIGH:.4g} %: {names}"))
        return lines

    def _compare(self, part: FileRows) -> None:
        """Keep the highest rows so far."""
        judged, ranks = part.judged, part.judged.scores.rank
        rows = judged.block.which + judged.first
        for i in np.argsort(-ranks, kind="stable")[:MOST_ANOMALOUS].tolist():
            entry = AnomalousRow(float(ranks[i]), -(self.scored + i), part.path, int(rows[i]))
            if len(self._most_anomalous) < MOST_ANOMALOUS or entry > self._most_anomalous[-1]:
                entry.text = self._text(judged, i)
                self._keep([entry])

    def _keep(self, rows: Iterable[AnomalousRow]) -> None:
        every = sorted((*self._most_anomalous, *rows), reverse=True)
        self._most_anomalous = every[:MOST_ANOMALOUS]

    def _text(self, judged: JudgedRows, i: int) -> str:
        scores, above = judged.scores, _main_over(judged.scores)[i]
        text = f"SPE {scores.spe[i]:.4g}, T2 {scores.t2[i]:.4g}"
        if scores.linear is not None:
            text = f"SPE {scores.spe[i]:.4g} of features, {scores.linear[i]:.4g} of readings"
        if scores.distance is not None:
            text = f"distance {scores.distance[i]:.4g}, {text}"
        over = f", above {100 * above:.4g} %" if above else ""
        top = [
            f"{printable(self._names[j])} {share:.0%}"
            for j, share in zip(*(each[i].tolist() for each in judged.top), strict=True)
            if share > 0
        ]
        twins = " (each told by the other)" if judged.twins[i] else ""
        return f"{text}{over}; {', '.join(top) or 'no residual'}{twins}"


def _over(scores: RowScores) -> dict[str, Array]:
    over = {"SPE": scores.over_spe, "T2": scores.over["t2"]}
    return over if scores.distance is None else {"distance": scores.over["distance"]} | over


def _main_over(scores: RowScores) -> Array:
    """Return the limit that rows are over by their combined score."""
    return limits_passed(scores)["over"]


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
    for said in dict.fromkeys(said for _, notes in meant for said in notes):
        note(said)
    found = [file for files, _ in meant for file in files]
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
