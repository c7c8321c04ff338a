"""Remote paths: files of any file system that fsspec knows, such as s3://bucket/file.parquet.

A `RemotePath` stands where a `Path` does. Of a Parquet file only columns that are wanted are read.
"""

from __future__ import annotations

import gzip
import stat
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from types import SimpleNamespace
from typing import Any, BinaryIO, cast

from submerge import UsageError
from submerge_client.datasets.source import Source, refusal

SCHEME = "://"


@dataclass(frozen=True)
class RemotePath:
    """A file in a file system of fsspec."""

    url: str

    def __str__(self) -> str:
        return self.url

    def __lt__(self, other: object) -> bool:
        return str(self) < str(other)

    @property
    def _pure(self) -> PurePosixPath:
        return PurePosixPath(self.url.partition(SCHEME)[2])

    @property
    def name(self) -> str:
        return self._pure.name

    @property
    def suffix(self) -> str:
        return self._pure.suffix

    @property
    def suffixes(self) -> list[str]:
        return self._pure.suffixes

    def is_dir(self) -> bool:
        """Return False: folders are named by patterns."""
        return False

    def exists(self) -> bool:
        """Return False: no file of this machine is it."""
        return False

    def stat(self) -> SimpleNamespace:
        """Return what a regular file has: a remote path is always taken for one."""
        return SimpleNamespace(st_mode=stat.S_IFREG)

    def open(self, mode: str = "rb") -> Any:
        """Open the file to read its bytes."""
        system, place = _system(self.url)
        with _blaming(self):
            return system.open(place, mode)


class RemoteSource(Source):
    """One remote file, plain or gzip."""

    @contextmanager
    def unpacked(self) -> Iterator[BinaryIO]:
        with _blaming(self.path), self.path.open("rb") as stream:
            if not self.packed:
                yield cast("BinaryIO", stream)
                return
            with gzip.open(stream) as inner:
                yield cast("BinaryIO", inner)


def path_of(text: str) -> Path:
    """Return a path that a person wrote: a remote one if it has a scheme."""
    return cast("Path", RemotePath(text)) if SCHEME in text else Path(text)


def is_remote(path: object) -> bool:
    return isinstance(path, RemotePath)


def remote_matches(path: Path) -> Sequence[Path]:
    """Return the files that a remote path means, in the order of names: it may be a pattern."""
    url = str(path)
    if not any(sign in url for sign in "*?["):
        return [path]
    system, place = _system(url)
    with _blaming(path):
        found = sorted(map(str, system.glob(place)))
    if not found:
        hint = "check the pattern and its folder"
        raise refusal(path, expected="files that match", got="none", hint=hint)
    return [cast("Path", RemotePath(str(system.unstrip_protocol(each)))) for each in found]


def source_of(path: Path) -> Source:
    """Open a file, remote or not, and look at its first bytes."""
    if not is_remote(path):
        return Source.of(path)
    with _blaming(path):
        return RemoteSource.looked_at(path)


@contextmanager
def written(path: Path) -> Iterator[BinaryIO]:
    """Open a file that is copied to a remote path as a whole when the body ends without error."""
    system, place = _system(str(path))
    with tempfile.NamedTemporaryFile() as file:
        yield cast("BinaryIO", file)
        file.flush()
        with _blaming(path):
            system.put_file(file.name, place)


def _system(url: str) -> tuple[Any, str]:
    scheme = url.partition(SCHEME)[0]
    try:
        import fsspec

        return cast("tuple[Any, str]", fsspec.core.url_to_fs(url))
    except ImportError as error:
        raise UsageError(
            f"{scheme}:// needs {error.name or 'more'}, which is not installed ({error}):"
            " pip install 'submerge[dask]', and what fsspec needs for it, such as s3fs"
        ) from error
    except ValueError as error:
        raise UsageError(
            f"expected a path that fsspec knows, got {url} ({error}): write such as"
            " s3://bucket/*.parquet"
        ) from error


@contextmanager
def _blaming(path: object) -> Iterator[None]:
    """Make errors of a file system ours."""
    try:
        yield
    except UsageError:
        raise
    except Exception as error:
        # Each file system has errors of its own.
        reason = " ".join(str(error).split())[:160] or type(error).__name__
        hint = "check its name, and who may read it"
        raise refusal(path, expected="a file that can be read", got=reason, hint=hint) from error
