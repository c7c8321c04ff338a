"""Whether the drill of a fit is right on later rows of real servers, whose levels move.

Each machine's first 60 % of training rows is fitted. The sizes that its drill says are found in .90
of tries are put into the later rows at some places, with both signs, and judged as `detect` does.
"""

import copy

import click
import numpy as np

import blas  # noqa: F401 (before numpy: it sets one thread)
from report import Table
from servers import EPOCH, FOLDER, SETS, Server, read
from submerge.drill.drill import SIZED, shape
from submerge.history.detection import HistoryDetector
from submerge.history.fit import fit
from submerge.history.recording import Recorded
from submerge.history.settings import SOON
from submerge_files.fit.run import drill


def tried(server: Server, places: int) -> tuple[object, ...]:
    """Return the row of a machine."""
    rows, cut, name = server.train, int(0.6 * len(server.train)), server.name
    times = EPOCH + server.period_s * np.arange(len(rows))
    names = [f"c{i + 1}" for i in range(rows.shape[1])]
    fitted = fit(lambda: [Recorded(name, rows[:cut], times[:cut], name)], names)
    said = drill(fitted)
    detector = HistoryDetector(fitted.model, fitted.states[name], server.period_s, SOON)
    draw, ages = np.random.default_rng(0), np.arange(1, said.within + 1) / said.within

    def alarmed(part: np.ndarray) -> bool:
        """Return whether rows that come next raise an alarm; the detector stays as it is."""
        by, judge = copy.copy(detector._by), copy.copy(detector._judge)
        known = {alarm.number for alarm in by.monitor.alarms}
        by.monitor, by.rows, judge._by = copy.copy(by.monitor), by.rows + len(part), by
        by.monitor.recent_rows = copy.copy(by.monitor.recent_rows)
        judge.judge(judge.prepare(part))
        return any(alarm.number not in known for alarm in by.monitor.alarms)

    shares, at, busy = dict[tuple[str, int], list[bool]](), cut, 0
    for start in np.linspace(cut + 200, len(rows) - said.within - 1, places).astype(int).tolist():
        list(detector.add(Recorded(name, rows[at:start], times[at:start], name)))
        at, next_ones = start, rows[start : start + said.within]
        if any(a.is_open for a in detector.monitor.alarms) or alarmed(next_ones):
            busy += 1
            continue
        for c, kind in ((c, kind) for c in range(len(names)) for kind in SIZED):
            size = said.channels[c][kind]["median"]
            for sign in (1, -1) if size is not None else ():
                bad = next_ones.copy()
                bad[:, c] += sign * size * shape(kind, ages, draw.standard_normal(said.within))
                shares.setdefault((kind, c), []).append(alarmed(bad))
    found = np.array([np.mean(each) for each in shares.values()])
    within = float((abs(found - 0.9) <= 0.1).mean())
    return name, len(found), 0.9, float(found.mean()), within, said.in_alarm, busy / places


@click.command(help=__doc__)
@click.option("--places", default=16, show_default=True, help="Where faults begin.")
def main(places: int) -> None:
    paths = [(path, s) for glob, s in SETS.values() for path in sorted(FOLDER.glob(glob))]
    rows = [tried(read(*each), places) for each in paths]
    of = [row[1] for row in rows]
    mean = [float(np.average([row[i] for row in rows], weights=of)) for i in range(2, 7)]
    columns = {"machine": "", "channels and kinds": "d", "forecast": ".2f", "found": ".2f"}
    columns |= {"within 10": ".0%", "in alarm: forecast": ".0%", "found in alarm": ".0%"}
    click.echo(Table("Servers", columns, [*rows, ("all", sum(of), *mean)]).markdown)


if __name__ == "__main__":
    main()
