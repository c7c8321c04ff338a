"""ReadingOptions: which columns of recorded files are read, and as what."""

from __future__ import annotations

from dataclasses import dataclass

from submerge import UsageError
from submerge.condition import InState
from submerge_client.datasets.fields import NUMBER
from submerge_files.reader.formats import intel_lab

NO_TIME = "none"
BY_FILE = "file"


@dataclass(frozen=True)
class ReadingOptions:
    """What the commands that read files are asked for.

    columns : Names, globs such as "temp*", or ranges such as "a..f"; empty: all numbers but time.
    skip : Columns that are left out, written likewise.
    time : The column of times, or "date+clock" for two. Empty: it is looked for; "none": no time.
    time_format : A pattern of `strptime`, a unit (s, ms, us, ns), or "excel". Empty: it is found.
    long : Columns of the channel's name and of its value, if each row has one value.
    node_by : "file", or a column: a machine for each. Empty: all files are of one machine.
    zero_is_missing : Whether 0 is a gap.
    missing : What is a gap, too: numbers in all formats, and words in tables of text.
    states : Only rows whose columns of text are in these states.
    quantity : Which one of an Intel Lab log is read.
    sort : Whether rows out of order are sorted by time, in memory; otherwise they are refused.
    """

    columns: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    time: str = ""
    time_format: str = ""
    long: tuple[str, str] | None = None
    node_by: str = ""
    zero_is_missing: bool = False
    sort: bool = False
    missing: tuple[str, ...] = ()
    states: tuple[InState, ...] = ()
    quantity: str = intel_lab.USUAL
    columns_are: str = "--columns"

    def __post_init__(self) -> None:
        if self.sort and self.time == NO_TIME:
            raise UsageError(
                'expected times to sort by, got time = "none"; leave one of the two out'
            )
        if self.time_format and self.time == NO_TIME:
            raise UsageError(
                'expected times to read by time_format, got time = "none"; leave one of the two out'
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
