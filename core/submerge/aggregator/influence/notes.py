"""InfluenceNotes: what a log says of nodes that a model leaves out, or bounds."""

from __future__ import annotations

from collections.abc import Mapping

from submerge.protocol.machine import Note
from submerge.robust.influence import InfluenceBound
from submerge.robust.outliers import Outlier
from submerge.stats.moments import LEAST_NODES, MOST_MOVED, Moments, movers


class InfluenceNotes:
    """The nodes of one group that were named last; each change is said once."""

    def __init__(self, group: str) -> None:
        self._group = group
        self._outliers: frozenset[str] = frozenset()
        self._bounded: frozenset[str] = frozenset()
        self._lacking: frozenset[str] = frozenset()
        self._moved: frozenset[str] = frozenset()

    def news(
        self,
        outliers: Mapping[str, Outlier],
        bounds: Mapping[str, InfluenceBound],
        lacking: frozenset[str],
        measured: Mapping[str, Moments],
    ) -> list[Note]:
        """Return notes on the nodes that have changed since the last call.

        lacking : nodes whose rows have no energies of channels
        measured : moments by node, while the schema is open
        """
        said = self._of_outliers(outliers) + self._of_bounds(bounds)
        return said + self._of_lacking(lacking) + self._of_scales(measured)

    def _of_scales(self, measured: Mapping[str, Moments]) -> list[Note]:
        what, why = "scale of a node refused", "center, scale and gamma are medians over nodes"
        if len(measured) < LEAST_NODES:
            what, why = "node decides the scale", f"of fewer than {LEAST_NODES} nodes all count"
        facts = {
            "group": self._group,
            "meaning": f"pooled, it moves a scale more than {MOST_MOVED:g} times; {why}",
            "todo": "look whether the node's readings are in the right units",
        }
        moved = frozenset(movers(measured))
        new, self._moved = moved - self._moved, moved
        return [Note(what, {"node": node} | facts) for node in sorted(new)]

    def _of_lacking(self, lacking: frozenset[str]) -> list[Note]:
        facts = {
            "group": self._group,
            "meaning": "its rows stay out of the noise of each channel; where no model has had that"
            " yet, alarms are raised by SPE and T2 in place of distances",
            "todo": "update it and the nodes below it; rows that an earlier version has left fade,"
            " or `nodes drop` removes them",
        }
        new, self._lacking = lacking - self._lacking, lacking
        return [Note("no energies of channels", {"node": node} | facts) for node in sorted(new)]

    def _of_outliers(self, outliers: Mapping[str, Outlier]) -> list[Note]:
        notes = []
        for node in sorted(outliers.keys() ^ self._outliers):
            facts = {"group": self._group, "node": node}
            if node in outliers:
                facts["why"] = f"far from the others: {outliers[node].words}"
                facts["meaning"] = "its rows are kept, and leave the model until they are like them"
            notes.append(Note("node left out" if node in outliers else "node in again", facts))
        self._outliers = frozenset(outliers)
        return notes

    def _of_bounds(self, bounds: Mapping[str, InfluenceBound]) -> list[Note]:
        bounded = frozenset(
            node
            for node, bound in bounds.items()
            # Once said, it is over only when nothing is left of it: no line for each wobble.
            if bound.notable or node in self._bounded
        )
        notes = []
        for node in sorted(bounded ^ self._bounded):
            facts = {"group": self._group, "node": node}
            if node in bounded:
                facts["why"] = bounds[node].words
                facts["meaning"] = "its readings are kept, and weigh less in the model"
                facts["todo"] = "check the node; a node that is as it should be: `trusted`"
            what = "node's influence bounded" if node in bounded else "node counts in full again"
            notes.append(Note(what, facts))
        self._bounded = bounded
        return notes
