"""OfNamedRows: what river's estimators say of the features that they learn."""

from __future__ import annotations

from river import base

from submerge_bridges.river.named_rows import NamedRows


class OfNamedRows:
    """An estimator whose rows are `NamedRows`."""

    _rows: NamedRows

    @property
    def channels(self) -> tuple[base.typing.FeatureName, ...]:
        """The features that are learnt, sorted by name."""
        return self._rows.channels

    @property
    def unknown(self) -> int:
        """Values that were left out because their feature is not learnt."""
        return self._rows.unknown
