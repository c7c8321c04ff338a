"""HistoryDetection: alarms on the same history, after it was learnt."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from submerge.condition import Condition
from submerge.history.fit import Fitted
from submerge.history.recording import TimeSpan
from submerge.history.settings import SOON, FitSettings
from submerge_files.detect.curves import Curves
from submerge_files.detect.run import Detected, DetectRequest, detect
from submerge_files.fit.comparison import Comparison, compare
from submerge_files.fit.saving import learnt_of
from submerge_files.fit.time_spans import Label
from submerge_files.reader import Recordings

if TYPE_CHECKING:
    from submerge_files.cluster import FileCluster


@dataclass(frozen=True)
class HistoryDetection:
    """What detection on the same history found.

    curves : What a picture needs.
    comparison : With the known faults.
    left_out : Spans that were not learnt.
    """

    detected: Detected
    curves: Curves | None
    comparison: Comparison | None
    left_out: tuple[TimeSpan, ...]

    def draw(self, path: Path) -> None:
        """Write the picture to `path`, a PNG."""
        from submerge_files.detect.plot import draw

        if self.curves is not None:
            draw(path, self.curves, self.detected, self.left_out)


def detect_history(
    recordings: Recordings,
    fitted: Fitted,
    settings: FitSettings,
    labels: Sequence[Label],
    *,
    draws: bool,
    cluster: FileCluster | None = None,
    advance: Callable[[int], None] = lambda _: None,
) -> HistoryDetection:
    """Detect alarms on the history that was learnt, in one pass.

    labels : The known faults; their rows are judged, and excluded ones are not.
    draws : Whether a picture is wanted.
    cluster : Whose workers read the rows.
    """
    curves = Curves() if draws else None
    when: Condition | None = settings.when
    request = DetectRequest(
        recordings, fitted.model, learnt_of(fitted), SOON, when, settings.exclude
    )
    if cluster is None:
        detected = detect(request, curves, advance=advance)
    else:
        detected = cluster.detect(request, advance)
    first, comparison = fitted.first, None
    if labels:
        normal = max(0, detected.judged - sum(first.fault_rows)) * first.period_s
        comparison = compare(labels, first.fault_rows, detected.alarms, normal)
    deviant = [TimeSpan(each.first, each.last) for each in fitted.folds.deviant.values()]
    left_out = [span for span in (*settings.without, *deviant) if not math.isnan(span.first)]
    return HistoryDetection(detected, curves, comparison, tuple(left_out))
