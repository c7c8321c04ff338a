"""FleetView: what a client knows of its fleet: the settled schema, and the newest model."""

from __future__ import annotations

from dataclasses import replace

from submerge.errors import PeerError
from submerge.protocol.machine import Note
from submerge.protocol.messages import HIGHEST, Model
from submerge.schema import Schema, differences


class FleetView:
    """One client's.

    Parameters
    ----------
    asked : Schema
        What its sensors send; scaling, or gamma, may be left to the fleet.
    learns_scaling : bool
        As in `ClientSettings`.

    Attributes
    ----------
    asked : Schema
    schema : Schema
        With what the fleet has settled since.
    model : Model or None
        The newest, for scoring.
    """

    def __init__(self, asked: Schema, *, learns_scaling: bool) -> None:
        self.asked = self.schema = asked
        self.model: Model | None = None
        self._learns_scaling = learns_scaling

    @property
    def version(self) -> int:
        """Of the newest model; 0 without one."""
        return 0 if self.model is None else self.model.version

    @property
    def is_settled(self) -> bool:
        """Whether nothing of the schema is left for the fleet to say."""
        return not self.is_raw and self.schema.features.settled

    @property
    def is_raw(self) -> bool:
        """Whether readings have no common size yet."""
        return self._learns_scaling and self.schema.scaling is None

    def recall(self, model: Model) -> None:
        """Take a model that was kept, and what the fleet had settled by then.

        The next join says whether it holds.
        """
        self._use(model)
        if self.is_settled:
            return
        try:
            schema = Schema.parse(model.schema)
        except PeerError:
            return  # of a later form: it is settled at the join
        if schema.is_like(self.asked):
            self.schema = schema

    def adopt(self, canonical: bytes) -> Note | None:
        """Take the fleet's schema: the same channels, and what it has settled since.

        Returns
        -------
        Note or None
            Why it is refused, if it is.
        """
        try:
            schema = Schema.parse(canonical)
        except PeerError as error:
            return Note("schema refused", {"why": str(error)})
        if not schema.is_like(self.asked):
            # Scaling and gamma are the fleet's; what the channels are, the sensors say.
            return Note("schema refused", {"lines": differences(schema, self.asked)})
        self.schema = schema
        return None

    def take(self, model: Model) -> bool:
        """Keep a model that is newer, of this node's own schema; return whether it is."""
        newer = self.version < model.version <= HIGHEST
        if newer:
            self._use(model)
        return newer

    def _use(self, model: Model) -> None:
        """Score with a model; with the last that knew something, if a root begins anew."""
        old = self.model
        if old is not None and old.fingerprint == model.fingerprint:
            if model.summary is None:
                model = replace(model, summary=old.summary, limits=old.limits)
            if model.maxima is None:
                # Where all below begin anew at once, for a moment nobody tells of hours.
                model = replace(model, maxima=old.maxima)
        self.model = model
