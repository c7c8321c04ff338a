"""FleetView: the settled schema and the newest model, as one client knows them."""

from __future__ import annotations

from dataclasses import replace

from submerge.errors import PeerError
from submerge.protocol.machine import Effect, Keep, Note
from submerge.protocol.messages import HIGHEST, Model, most_told
from submerge.protocol.session import ParentSession
from submerge.schema import Schema, differences

MODEL = ("model",)  # the record of the newest model; a client can do without any of its records


class FleetView:
    """What one client knows of its fleet: its schema, and with what the fleet has settled."""

    def __init__(self, configured: Schema, *, learns_scaling: bool) -> None:
        self.configured = self.schema = configured
        self.model: Model | None = None
        self._learns_scaling = learns_scaling

    @property
    def version(self) -> int:
        """Version of the newest model; 0 without one."""
        return 0 if self.model is None else self.model.version

    @property
    def is_settled(self) -> bool:
        """Whether the fleet has nothing left to settle."""
        return not self.is_raw and self.schema.features.settled

    @property
    def is_raw(self) -> bool:
        """Whether the scaling is not known yet."""
        return self._learns_scaling and self.schema.scaling is None

    def recall(self, model: Model) -> None:
        """Take a model that was kept, and the schema settled by then; the next join corrects it."""
        self._use(model)
        if self.is_settled:
            return
        try:
            schema = Schema.parse(model.schema)
        except PeerError:
            return  # of a later form: the join settles it
        if schema.is_like(self.configured):
            self.schema = schema

    def adopt(self, canonical: bytes) -> Note | None:
        """Take the fleet's schema, if it has the same channels; return why it is refused."""
        try:
            schema = Schema.parse(canonical)
        except PeerError as error:
            return Note("schema refused", {"why": str(error)}, "warning")
        if not schema.is_like(self.configured):
            # The fleet decides on scaling and gamma, the sensors decide on the channels.
            return Note(
                "schema refused", {"lines": differences(schema, self.configured)}, "warning"
            )
        self.schema = schema
        return None

    def receive(self, model: Model, fingerprint: str, session: ParentSession) -> list[Effect]:
        """Take and keep a model, if it is newer and of the schema that the node learns under."""
        if model.fingerprint != fingerprint:
            if model.schema != self.configured.canonical:
                session.rejoin()  # the fleet may have settled on a scaling, or a gamma
            return []
        if not self.version < model.version <= HIGHEST:
            return []
        self._use(model)
        return [Keep({MODEL: self.model})]

    def _use(self, model: Model) -> None:
        """Score with a model; if a root begins again, with the last summary that there was."""
        old = self.model
        if old is not None:
            model = replace(model, told=most_told(model.told, old.told))
        if old is not None and old.fingerprint == model.fingerprint:
            if model.summary is None:
                model = replace(model, summary=old.summary, limits=old.limits)
            if model.maxima is None:
                # If all nodes below begin again at once, no hours are reported for a moment.
                model = replace(model, maxima=old.maxima)
        self.model = model
