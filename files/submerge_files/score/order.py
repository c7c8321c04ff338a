"""ScoreOrder: which files are scored, and how, in plain values; and how it is carried out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from submerge.errors import UsageError
from submerge.judge.prepare import none_left
from submerge_files.console.conditions import condition_of
from submerge_files.console.reading_options import reading_options
from submerge_files.score.lines import CsvScoreLines, JsonScoreLines, ScoreHeadings
from submerge_files.score.mean import parsed
from submerge_files.score.model import Normal
from submerge_files.score.output import ScoreForm, open_output
from submerge_files.score.parquet import SUFFIX, ParquetScores
from submerge_files.score.run import ScoreRequest, opened, score
from submerge_files.score.summary import ScoreSummary
from submerge_files.score.table import TableOptions

if TYPE_CHECKING:
    from submerge_files.score.plot import ScoreCurves


@dataclass(frozen=True)
class ScoreOrder:
    """What `submerge score` is asked for.

    files : to be scored
    rank, mean, when : as the command's options
    as_json : lines of JSON, not CSV
    reading : the options of reading, by their names
    """

    files: tuple[Path, ...]
    rank: int | None
    mean: str | None
    when: str | None
    as_json: bool
    reading: dict[str, Any]

    def carried_out(
        self,
        normal: Normal,
        target: Path | None,
        *,
        needed: bool = True,
        curves: ScoreCurves | None = None,
        advance: Callable[[int], None] = lambda _: None,
    ) -> tuple[ScoreSummary, Iterable[str]]:
        """Score the files and write a line for each row; return the summary, and remarks.

        target : None is standard output
        needed : refuse files of which no row has a score
        """
        condition = condition_of(self.when, normal.schema.names)
        mean = None if self.mean is None else parsed(self.mean)
        request = ScoreRequest(mean, condition, **_reading(**self.reading))
        form = self._form(normal, request, target)
        summary, remarks = ScoreSummary(normal), dict.fromkeys(f"note: {n}" for n in normal.notes)

        def note(text: str) -> None:
            remarks.setdefault(f"note: {text}")

        def warn(text: str) -> None:
            remarks.setdefault(f"warning: {text}")

        with open_output(target, form) as write:
            found = score(self.files, normal, request, note=note, warn=warn, advance=advance)
            for path, part in found:
                write(path, part)
                summary.add(path, part)
                if curves is not None:
                    curves.add(path, part)
            if needed:
                # Raised here, so that older scores are not overwritten.
                check_scored(summary, self.when, normal)
        return summary, remarks

    def _form(self, normal: Normal, request: ScoreRequest, target: Path | None) -> ScoreForm:
        """Look at all files before the work, and return how their scores are written."""
        timed = [opened(path, normal, request)[0].timed for path in self.files]
        kernel, factors = len(normal.summary.parts) > 1, bool(normal.factors)
        kept = tuple(dict.fromkeys(request.table.keep))
        headings = ScoreHeadings(
            normal.schema.names, kernel=kernel, factors=factors, timed=any(timed), kept=kept
        )
        if target is not None and target.suffix == SUFFIX:
            if self.as_json:
                raise UsageError(
                    f"--json writes lines of JSON, got {target}: leave one of the two out"
                )
            return ParquetScores(headings)
        if target is not None and not self.as_json and target.suffix in (".json", ".jsonl"):
            raise UsageError(f"{target} would hold CSV: give --json, or name it .csv")
        return JsonScoreLines(normal.schema, headings) if self.as_json else CsvScoreLines(headings)


def check_scored(summary: ScoreSummary, when: str | None, normal: Normal) -> None:
    """Refuse files of which no row has a score."""
    if not summary.scored:
        condition = condition_of(when, normal.schema.names)
        none = none_left(summary.rows, summary.reasons, condition)
        raise UsageError(f"expected rows that can be scored, got {none}")


def _reading(
    quantity: str,
    keep: tuple[str, ...],
    columns: str | None,
    time: str | None,
    time_format: str | None,
    long: str | None,
    **others: Any,
) -> dict[str, Any]:
    """Return the options of reading as the request takes them."""
    reading = reading_options(columns, time, time_format, long)
    table = TableOptions(quantity, reading, tuple(dict.fromkeys(keep)))
    return {"table": table} | others
