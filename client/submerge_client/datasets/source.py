"""Source: one file, plain or gzip, as bytes or text; and the errors about files (UsageError)."""

from __future__ import annotations

import gzip
import io
import re
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO, NamedTuple, Self, TextIO, cast

from submerge import UsageError

GZIP = b"\x1f\x8b"
HEAD = 1 << 16
MOST_CHARACTERS = 1 << 24
"""Most characters of a line."""

FOREIGN = {
    GZIP: ("gzip inside gzip", "unpack it first"),
    b"\xfd7zXZ\x00": ("an xz archive", "unpack it first"),
    b"BZh": ("a bzip2 archive", "unpack it first"),
    b"\x28\xb5\x2f\xfd": ("a zstd archive", "unpack it first"),
    b"\xd0\xcf\x11\xe0": ("an Excel workbook", "save its sheet as CSV in UTF-8"),
    b"MATLAB 5.0": ("a MATLAB file", "save its matrix as CSV or .npy"),
    b"\x89HDF": ("an HDF5 file", "save its table as CSV or .npy"),
    b"submerge model": ("a model", "name it as --model, and files of readings as FILE"),
    b"SQLite format 3": ("an SQLite database", "export the table as CSV"),
    b"PAR1": ("a Parquet file", "export it as CSV: this reads text and .npy"),
    b"ARROW1": ("an Arrow file", "export it as CSV: this reads text and .npy"),
    **{
        bytes([0x80, protocol]): ("a pickle, which may run code", "save it as CSV or .npy")
        for protocol in range(2, 6)
    },
    b"\xff\xfe": ("UTF-16 text", "save it as UTF-8"),
    b"\xfe\xff": ("UTF-16 text", "save it as UTF-8"),
}
"""What is no table of ours, by first bytes: its name, and what to do."""

_ZIP = b"PK\x03\x04"
_ZIPPED = {
    b".npy": ("NumPy's .npz", "save each matrix as .npy"),
    b"[Content_Types].xml": ("an Excel workbook", "save its sheet as CSV in UTF-8"),
    b"xl/": ("an Excel workbook", "save its sheet as CSV in UTF-8"),
    b"mimetypeapplication/vnd.oasis": ("a spreadsheet", "save its sheet as CSV in UTF-8"),
}
"""What a zip archive is, by a name in its first bytes."""

_HTML = re.compile(rb"\s*<(!--|(!doctype html|html|head|body|table)\b)", re.IGNORECASE)
_CONTROL = re.compile(rb"[\0-\x08\x0e-\x1f]")
_ZEROS = re.compile(rb"\0{2,}")
ZERO = "a zero byte"
_JSON = re.compile(rb'\s*(\{\s*["}]|\[\s*[\[{"\d-])')


class Place(NamedTuple):
    """A place in a file. Lines and columns count from one, as in editors."""

    path: Path
    line: int | None = None
    column: int | None = None
    name: str = ""

    def __str__(self) -> str:
        line = f", line {self.line}" if self.line else ""
        column = f", column {self.column}" if self.column else ""
        return f"{self.path}{line}{column}" + (f" ({self.name})" if self.name else "")


@dataclass(frozen=True)
class Source:
    """A file that can be read any number of times; `head`: its first `HEAD` bytes, unpacked."""

    path: Path
    packed: bool
    head: bytes

    @classmethod
    def of(cls, path: Path) -> Source:
        with _blaming(path):
            mode = path.stat().st_mode
            if stat.S_ISDIR(mode):
                raise refusal(path, expected="a file", got="a directory", hint="name its files")
            if not stat.S_ISREG(mode):
                hint = "save what it yields and name that"
                raise refusal(path, expected="a file", got="a pipe or device", hint=hint)
        return cls.looked_at(path)

    @classmethod
    def looked_at(cls, path: Path) -> Self:
        """Open a file that is one, and look at its first bytes."""
        with _blaming(path), path.open("rb") as stream:
            packed = stream.read(len(GZIP)) == GZIP
        with cls(path, packed, b"").unpacked() as stream:
            head = stream.read(HEAD)
        if not head:
            raise empty(path)
        return cls(path, packed, head)

    @contextmanager
    def unpacked(self) -> Iterator[BinaryIO]:
        """Open the file as bytes."""
        with (
            _blaming(self.path),
            gzip.open(self.path) if self.packed else self.path.open("rb") as stream,
        ):
            yield cast("BinaryIO", stream)

    @contextmanager
    def damage_first(self) -> Iterator[None]:
        """Report a gzip file's damage, at its end, rather than the wrong rows it causes."""
        try:
            yield
        except UsageError:
            if self.packed:
                with self.unpacked() as stream:
                    while stream.read(1 << 20):
                        pass
            raise

    @contextmanager
    def text(self) -> Iterator[TextIO]:
        """Open the file as UTF-8; invalid bytes become lone surrogates, which fail as numbers."""
        # `illegible` finds them: a decoding error would not have the line.
        with (
            self.unpacked() as stream,
            io.TextIOWrapper(
                stream, encoding="utf-8-sig", errors="surrogateescape", newline=""
            ) as text,
        ):
            yield text

    @contextmanager
    def lines(self) -> Iterator[Iterator[str]]:
        """Open the file as lines of text, and refuse one that is too long for a line of a table."""
        with self.text() as text:
            yield self._bounded(text)

    def _bounded(self, text: TextIO) -> Iterator[str]:
        for line in iter(partial(text.readline, MOST_CHARACTERS), ""):
            if len(line) == MOST_CHARACTERS:
                raise refusal(
                    self.path,
                    expected=f"lines of less than {MOST_CHARACTERS >> 20} Mi characters",
                    got="a longer one",
                    hint="check its line ends",
                )
            yield line


def refusal(where: object, *, expected: str, got: str, hint: str) -> UsageError:
    # Names of files and columns may have line breaks.
    return UsageError(" ".join(f"{where}: expected {expected}, got {got}; {hint}".splitlines()))


def empty(path: Path) -> UsageError:
    """Return the error for a file with nothing in it."""
    return refusal(
        path, expected="rows of numbers", got="an empty file", hint="check how it was written"
    )


def binary(where: object, head: bytes, got: str) -> UsageError:
    """Return the error for a file that is not text: `got`, or the name of an archive."""
    if known := foreign(head):
        return refusal(where, expected="a table", got=known[0], hint=known[1])
    if got == ZERO and head[:1] != b"\0" and not _CONTROL.search(_ZEROS.sub(b"", head)):
        got, hint = "zero bytes, as after a loss of power", r"leave them out (tr -d '\0')"
        return refusal(where, expected="text", got=got, hint=hint)
    if not _CONTROL.search(head):
        hint = "save it as UTF-8, as `iconv -f WINDOWS-1252 -t UTF-8` does"
        return refusal(where, expected="UTF-8", got=f"text in other letters ({got})", hint=hint)
    return refusal(
        where,
        expected="UTF-8 text or .npy, plain or gzip",
        got=f"a binary file ({got})",
        hint="export it as CSV in UTF-8",
    )


def foreign(head: bytes) -> tuple[str, str] | None:
    """Return what a file is that is no table of ours, and what to do; None if it may be one."""
    if head.startswith(_ZIP):
        return next(
            (known for name, known in _ZIPPED.items() if name in head[:4096]),
            ("a zip archive", "unpack it first"),
        )
    for magic, known in FOREIGN.items():
        if head.startswith(magic):
            return known
    if head[257:262] == b"ustar":
        return ("a tar archive", "unpack it first")
    # A heading may begin with a bracket, but not with a quote or a number inside it.
    text = head.removeprefix(b"\xef\xbb\xbf")
    if _JSON.match(text):
        return ("JSON", "write it as CSV, a column for each key")
    if _HTML.match(text):
        return ("HTML", "a page, as of a log-in, has come in place of the file: fetch it again")
    if text.startswith(b"<?xml"):
        return ("XML", "write it as CSV")
    return None


def illegible(text: str) -> str:
    """Return a description of the first character that is no text, or an empty string."""
    for character in text:
        if character == "\0":
            return ZERO
        if "\udc80" <= character <= "\udcff":
            return f"byte 0x{ord(character) - 0xDC00:02x} is not UTF-8"
    return ""


def shown(text: str) -> str:
    """Return a field in quotes, shortened for a message."""
    return repr(text if len(text) <= 40 else text[:39] + "…")


@contextmanager
def _blaming(path: Path) -> Iterator[None]:
    try:
        yield
    except (FileNotFoundError, NotADirectoryError):
        raise refusal(
            path, expected="a file", got="nothing of that name", hint="check the path"
        ) from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        got = "one that breaks off" if isinstance(error, EOFError) else f"a damaged one ({error})"
        raise refusal(path, expected="a whole gzip file", got=got, hint="copy it again") from error
    except OSError as error:
        raise refusal(
            path,
            expected="a readable file",
            got=f"the system's answer: {error.strerror or error}",
            hint="check its permissions and disk",
        ) from error
