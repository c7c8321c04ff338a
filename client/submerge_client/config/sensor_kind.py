"""Sensor, and SensorKind: the settings of one kind, and what the programs ask of any kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar, Protocol

from submerge_client.config.sections import Section

if TYPE_CHECKING:
    import threading

    from submerge_client.config.links import Link
    from submerge_client.sensors.gather import Hand
    from submerge_client.sensors.tally import SensorLog

SILENCE_S = 600.0  # seconds without a row after which a program counts as stuck, for short periods


class Sensor(Protocol):
    """A source of rows. Its constructor raises UsageError for a wrong configuration."""

    @property
    def counts(self) -> dict[str, int]:
        """Rows and readings left out, dropped or late, by kind; read from any thread."""

    def read(self, hand: Hand, stop: threading.Event) -> None:
        """Hand over rows until the source ends or `stop`, checked twice a second, is set."""


class SensorKind(Section, frozen=True, kw_only=True):
    """The settings of a sensor.

    A subclass has `tag_field="kind"` and a tag. Its setting `period_s`, if it has one, is the time
    between rows.
    """

    reads_input: ClassVar[bool] = False
    """Whether it reads standard input, which a service does not have."""

    runs_program: ClassVar[bool] = False
    """Whether it starts a program of the user's, which needs more than a service of ours."""

    output_reader: ClassVar[str] = ""
    """What reads standard output as something else than lines of JSON; "" if nothing does."""

    needs: ClassVar[tuple[str, str, str] | None] = None
    """A module that it needs, its distribution and our extra, if it is no link's."""

    def open(self, channels: Sequence[str], *, note: SensorLog, gather_s: float = 0.0) -> Sensor:
        """Return what reads it, in the schema's channels; UsageError if it cannot be opened."""
        # `note` takes remarks from any thread; rows that come fast wait `gather_s` for others.
        raise NotImplementedError

    @property
    def every_s(self) -> float:
        """Seconds between rows, if the sensor has a period; else 0."""
        return float(getattr(self, "period_s", 0.0))

    @property
    def late_s(self) -> float:
        """Seconds that a row waits for late values."""
        return 0.0

    @property
    def silence_s(self) -> float:
        """Seconds without a row after which the program counts as stuck, for short periods."""
        return SILENCE_S

    @property
    def link(self) -> Link | None:
        """The broker or server that it connects to."""
        return None

    @property
    def hears_devices(self) -> bool:
        """Whether new devices make themselves heard, and with them new channels."""
        return False

    @property
    def passes_on(self) -> bool:
        """Whether what it reads goes on to standard output, with the scores among it."""
        return False

    @property
    def ends(self) -> bool:
        """Whether the program ends by itself, when all is read."""
        return False

    @property
    def takes(self) -> Callable[[str], bool]:
        """Whether it would deliver a channel of a name."""
        return lambda _: True

    def wrong_with(self, channel: str) -> str:
        """Return what is expected of a channel's name; "" if it is right."""
        return ""

    @property
    def advice(self) -> str:
        """What to look at when there was no row at all."""
        return "see [sensor]"
