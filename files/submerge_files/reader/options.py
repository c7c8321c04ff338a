"""ReadingOptions: which columns of recorded files are read, and as what."""

from __future__ import annotations

from dataclasses import dataclass

from submerge import UsageError
from submerge.condition import InState
from submerge_client.datasets.fields import NUMBER
from submerge_files.reader.formats import intel_lab

NO_TIME = "none"
BY_FILE = "file"
ONLY_MACHINE = "machine"  # the name of the machine if all files are of one


@dataclass(frozen=True)
class ReadingOptions:
    """What the commands that read files are asked for."""

    columns: tuple[str, ...] = ()  # names, globs such as "temp*", ranges "a..f"; empty: all numbers
    skip: tuple[str, ...] = ()  # columns that are left out, likewise
    time: str = ""  # a column, or "date+clock"; empty: it is looked for; "none": no time
    time_format: str = ""  # a pattern of `strptime`, a unit, or "excel"; empty: it is found
    long: tuple[str, str] | None = None  # columns of the channel's name and of its value
    node_by: str = ""  # "file", or a column: a machine for each
    zero_is_missing: bool = False  # 0 is a gap
    sort: bool = False  # rows out of order, by time, in memory; otherwise they are refused
    missing: tuple[str, ...] = ()  # gaps, too: numbers in all formats, words in tables of text
    states: tuple[InState, ...] = ()  # only rows whose columns of text are in these
    quantity: str = intel_lab.USUAL  # of an Intel Lab log
    columns_are: str = "--columns"

    def __post_init__(self) -> None:
        for asked, what in (self.sort, "sort by"), (self.time_format, "read by time_format"):
            if asked and self.time == NO_TIME:
                raise UsageError(
                    f'expected times to {what}, got time = "none"; leave one of the two out'
                )
        if self.long is not None and self.long[0] == self.long[1]:
            raise UsageError(
                f"expected two columns of a long table, got {self.long[0]!r} twice;"
                " name the channel's column and the value's"
            )

    @property
    def missing_numbers(self) -> tuple[float, ...]:
        """The numbers that are gaps."""
        numbers = tuple(float(mark) for mark in self.missing if NUMBER.fullmatch(mark))
        return (*numbers, 0.0) if self.zero_is_missing else numbers
