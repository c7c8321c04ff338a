"""HistoryModel: `submerge.Model`, what is normal for a machine, learnt from files or frames.

1. A model in memory is what its file would hold: `fit` packs it and reads it back, so that a model
   that was saved and loaded gives the same numbers, bit for bit.
2. Channels go by name: other columns are passed over, and one that is missing is an error.
3. What reads model files and raises alarms is imported when it is called: it needs the extra
   `files`, and documentation is made without.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from submerge import UsageError
from submerge.condition import states_in
from submerge_files.python.frame_rows import source_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from submerge_files.console.curves import Curves
    from submerge_files.detect.run import Detected
    from submerge_files.model_file import SavedModel
    from submerge_files.python.judge import AlarmSpan


ARGUMENTS = frozenset(("columns", "time", "node-by", "sort", "when"))
"""Options of the commands that are arguments here."""


def named(text: str) -> str:
    """Return a sentence that names arguments in place of options, where there are any."""

    def name(found: re.Match[str]) -> str:
        option = found[1]
        return option.replace("-", "_") if option in ARGUMENTS else f"submerge fit --{option}"

    return re.sub(r"--([a-z][a-z-]*)", name, re.sub(r"--skip [^)]*\)", "columns)", text))


@contextmanager
def arguments_named() -> Iterator[None]:
    """Make errors name arguments."""
    try:
        yield
    except UsageError as error:
        error.args = (named(str(error)),)
        raise


class HistoryModel:
    """What is normal for a machine, learnt from files or frames. `submerge.Model` is its name.

    `fit` makes one, or `load`. It does what the commands `submerge fit`, `score` and `detect` do.

    Rows are of one machine, in the order of time. They are a frame of pandas (its index may be of
    times) or of polars, an array (n, channels), or files: a path, or a list of paths. NaN is a gap.

    rank : Directions that SPE and T2 are of.
    limits : The rate of false alarms that its alarm limits keep.
    period_s : Time that a row stands for, seconds; 0 without times.
    machines : Those that were learnt.

    See Also
    --------
    submerge.sklearn.SubspaceDetector : The same scores, as an estimator of scikit-learn.

    Examples
    --------
    >>> import numpy as np, submerge
    >>> rng = np.random.default_rng(0)
    >>> rows = rng.standard_normal((4000, 1)) + 0.1 * rng.standard_normal((4000, 3))
    >>> model = submerge.Model.fit(rows, names=["flow", "speed", "power"])
    >>> day = rows[:1000].copy()
    >>> day[500:600, 0] += 2
    >>> [alarm] = model.detect(day, names=model.channels)
    >>> 500 <= alarm.began < 510, next(iter(alarm.channels))
    (True, 'flow')
    """

    def __init__(self, saved: SavedModel) -> None:
        from submerge_files.python.judge import FrameJudge

        self._saved = saved
        self.judge = FrameJudge.of(saved)

    @classmethod
    def fit(
        cls,
        rows: Any,
        *,
        columns: Sequence[str] | None = None,
        time: str | None = None,
        names: Sequence[str] | None = None,
        rank: int | None = None,
        when: str | None = None,
        keep_all: bool = False,
        node_by: str | None = None,
        sort: bool = False,
    ) -> Self:
        """Learn what is normal from rows, oldest first.

        columns : The channels; all columns of numbers by default.
        time : The column of times. By default it is found: a frame's index of times, or a column
            as in files. "none": there is none.
        names : Of an array's columns.
        rank : Directions of SPE and T2; by default chosen by the likelihood of rows that were not
            learnt.
        when : Only rows in this state are learnt, such as "rpm > 50 and load >= 0.2", or
            "State == RUN" of a column of text.
        keep_all : Whether spans of time that are unlike all others are learnt too.
        node_by : Of files: "file", or a column, by which they are of several machines.
        sort : Of files: whether rows out of order are sorted.

        Raises
        ------
        UsageError
            If the rows are no table of numbers in order of time, or nothing can be learnt.

        Warns
        -----
        UserWarning
            About each column that is left out, or says nothing.
        """
        _check_extra()
        from submerge_files.fit.apart import learnt, settings_for
        from submerge_files.model_file import learnt_of, reread

        states, rest = states_in(when) if when else ((), None)
        by = node_by or ""
        with arguments_named():
            source = source_of(rows, names, columns, time, node_by=by, sort=sort, states=states)
            settings = settings_for(source, rank=rank, when=rest, leaves_out=not keep_all)
            fitted = learnt(source, settings)
        for note in source.notes:
            warnings.warn(named(note), UserWarning, stacklevel=2)
        return cls(reread(learnt_of(fitted, states)))

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a model of `save`, `submerge fit` or `submerge model save`."""
        _check_extra()
        from submerge_files import model_file

        return cls(model_file.read(Path(path)))

    def save(self, path: str | Path) -> None:
        """Write it to a file; only a new file or an older model may be written."""
        from submerge_files import model_file

        model_file.save(Path(path), self.judge.learnt, self._saved.shown)

    @property
    def packed(self) -> bytes:
        """The bytes of its file."""
        from submerge_proto.files import learnt as learnt_file

        return learnt_file.packed(self.judge.learnt)

    @property
    def channels(self) -> tuple[str, ...]:
        """Their names, in the order of the model."""
        return self._saved.schema.names

    @property
    def rank(self) -> int:
        """Directions that SPE and T2 are of."""
        return self._saved.model.rank

    @property
    def period_s(self) -> float:
        """Time that a row stands for, seconds; 0 without times."""
        return self.judge.learnt.period_s

    @property
    def machines(self) -> tuple[str, ...]:
        """The machines that were learnt."""
        return tuple(name for name, _ in self.judge.learnt.monitors)

    @property
    def limits(self) -> str:
        """The rate of false alarms that its alarm limits keep."""
        from submerge.history.detection import watching
        from submerge_files.fit.run import rate_of

        return rate_of(watching(self.judge.learnt).limits, self.period_s)

    def __repr__(self) -> str:
        rows = self._saved.model.counts.learnt
        every = f", one every {self.period_s:g} s" if self.period_s else ""
        return (
            f"<submerge.Model of {len(self.channels)} channels, rank {self.rank},"
            f" {rows:,} rows{every}; limits: {self.limits}>"
        )

    def score(
        self,
        rows: Any,
        *,
        time: str | None = None,
        names: Sequence[str] | None = None,
        when: str | None = None,
        machine: str | None = None,
    ) -> Any:
        """Score each row by itself, and say how close alarms are.

        time, names : As in `fit`. An array without names has the model's channels, in its order.
        when : Rows in another state have no score; by default as the model was fitted.
        machine : Which one they are of, for a model of several.

        Returns
        -------
        frame of the same kind, with the rows' index; a dict of arrays for an array
            `distance`, `spe`, `t2`: of the row, its gaps filled; NaN if it cannot be scored.
            `over`, `over_spe`, `over_t2`: the highest share of normal rows that the distance, SPE
            or T2 is above, such as .99; 0 for none. `filled`: how many gaps were filled.
            `alarm_ewma` and its like: what alarms are raised by, of rows in their order, over its
            limit: above 1 `detect` raises one.

        Warns
        -----
        UserWarning
            If the rows are at another level than those that were learnt.
        """
        with arguments_named():
            framed, condition = self.judge.frame(rows, time, names, when)
        found = self.judge.scores(framed, machine, condition)
        if level := self.judge.level(machine):
            every = np.ones(len(framed.values), bool)
            holds = every if condition is None else condition.holds(framed.values)
            level.add(framed.values[framed.only(holds)])
            level.warn(stacklevel=2)
        return framed.frame.scores(found, framed.clock)

    def detect(
        self,
        rows: Any,
        *,
        at_most: str = "1 false per week",
        time: str | None = None,
        names: Sequence[str] | None = None,
        when: str | None = None,
        machine: str | None = None,
    ) -> list[AlarmSpan]:
        """Return the alarms that a client with this model would have raised on rows.

        at_most : The rate of false alarms that is promised, such as "1 false per week".
        time, names, machine : As in `score`.
        when : Rows in another state are left out; by default as the model was fitted.

        Returns
        -------
        list of AlarmSpan, in the order in which they began.

        Warns
        -----
        UserWarning
            If the rows are at another level than those that were learnt.
        """
        return self.judge.spans(self._detected(at_most, None, rows, time, names, when, machine))

    def plot(
        self,
        rows: Any,
        *,
        at_most: str = "1 false per week",
        time: str | None = None,
        names: Sequence[str] | None = None,
        when: str | None = None,
        machine: str | None = None,
    ) -> Figure:
        """Draw scores over their limit, alarms, and channels over time, as `detect --plot` does.

        at_most, time, names, when, machine : As in `detect`.

        Returns
        -------
        matplotlib.figure.Figure
            A notebook shows it; `savefig` writes it.

        Warns
        -----
        UserWarning
            If the rows are at another level than those that were learnt.
        """
        from submerge_files.console.curves import Curves
        from submerge_files.detect.plot import draw

        curves = Curves()
        return draw(curves, self._detected(at_most, curves, rows, time, names, when, machine))

    def _detected(self, at_most: str, curves: Curves | None, *asked: Any) -> Detected:
        """Judge rows, as asked for by the arguments of a public method."""
        level = self.judge.level(asked[-1])
        with arguments_named():
            source, condition = self.judge.source(*asked)
            detected = self.judge.detected(source, condition, at_most, level, curves)
        if level is not None:
            level.warn(stacklevel=3)
        return detected

    def explain(
        self,
        rows: Any,
        row: Any,
        *,
        time: str | None = None,
        names: Sequence[str] | None = None,
        machine: str | None = None,
    ) -> Any:
        """Say of each channel what was read in a row, and what the other channels say.

        row : Which row or rows, by number from 0.
        time, names, machine : As in `score`.

        Returns
        -------
        frame of the same kind; a dict of arrays for an array
            `channel`, `value`, `expected`, their `difference` in units, and the `share` of the
            channel in what is anomalous about the row, the largest first; `twin` is the other of
            two channels of which either may be to blame, "" for none. With several rows `row`
            too. A frame of pandas has them as its index.
        """
        framed, _ = self.judge.frame(rows, time, names, "", part=False)
        many = hasattr(row, "__iter__")
        which = [_row(each, len(framed.values)) for each in (row if many else [row])]
        table = self.judge.explained(framed, which, machine)
        if not many:
            del table["row"]
        return framed.frame.table(table, ["row", "channel"] if many else ["channel"])


# What a person sees of the class: in errors, in the API's pages, and in pickles of the class.
HistoryModel.__name__ = HistoryModel.__qualname__ = "Model"
HistoryModel.__module__ = "submerge"


def _check_extra() -> None:
    try:
        import google.protobuf  # noqa: F401
        import msgspec  # noqa: F401
    except ModuleNotFoundError as error:
        raise UsageError(
            f"submerge.Model needs {error.name}, which is not installed:"
            " pip install 'submerge[files]'"
        ) from error


def _row(row: Any, n: int) -> int:
    """Return the number of a row, counted from the end if it is negative."""
    if not isinstance(row, int | np.integer) or not -n <= row < n:
        raise UsageError(
            f"expected the number of a row, from 0 to {n - 1}, got {row!r}:"
            " frame.index.get_loc(label) is that of a label"
        )
    return int(row) % n
