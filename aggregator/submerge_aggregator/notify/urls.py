"""read_urls(): the URLs of a file that only its owner can read, as values that do not print.

An Apprise URL holds passwords and tokens. `SecretUrl` shows its scheme and its line, nothing else.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from typing import NoReturn

from submerge import UsageError

SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]{0,31})://\S")

MOST_BYTES = 64 << 10  # a larger file is refused

SETTING = "alarms.apprise.urls_file"


class SecretUrl:
    """A URL of Apprise: no dataclass, so that nothing encodes its fields; it cannot be pickled."""

    __slots__ = ("_text", "line", "scheme")

    def __init__(self, text: str, line: int) -> None:
        found = SCHEME.match(text)
        if found is None:
            raise UsageError("expected a URL, scheme://...")
        self._text, self.line, self.scheme = text, line, found[1].lower()

    def reveal(self) -> str:
        """Return the URL itself: for Apprise only."""
        return self._text

    @property
    def digest(self) -> str:
        """A hash: the same after a restart, and no secret."""
        return blake2b(self._text.encode(), digest_size=8).hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SecretUrl) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __repr__(self) -> str:
        return f"{self.scheme}, line {self.line}"

    def __deepcopy__(self, memo: dict[int, object]) -> SecretUrl:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError("a SecretUrl is not written anywhere")


def read_urls(path: Path, environ: Mapping[str, str] = os.environ) -> tuple[SecretUrl, ...]:
    """Return the URLs of a file that only its owner can read, without empty lines and comments."""
    try:
        # Without O_NONBLOCK a pipe would block here.
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        with open(fd, "rb") as file:
            _check_mode(path, os.fstat(fd).st_mode, environ)
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{SETTING}: expected a file, got {path}: {error.strerror}") from None
    try:
        lines = data.decode().splitlines()
    except UnicodeDecodeError:
        lines = None
    if lines is None or len(data) > MOST_BYTES:
        raise UsageError(f"{SETTING}: expected a few lines of text, got something else in {path}")
    urls: dict[SecretUrl, None] = {}
    for number, line in enumerate(map(str.strip, lines), 1):
        if not line or line.startswith("#"):
            continue
        if not SCHEME.match(line):
            # Not shown: it may be a URL with a mistake in it.
            raise UsageError(f"{SETTING}: expected a URL, scheme://..., in line {number} of {path}")
        urls.setdefault(SecretUrl(line, number))
    if not urls:
        raise UsageError(f"{SETTING}: expected one URL per line, got none in {path}")
    return tuple(urls)


def _check_mode(path: Path, mode: int, environ: Mapping[str, str]) -> None:
    if not stat.S_ISREG(mode):
        raise UsageError(f"{SETTING}: expected a file, got {path}, which is none")
    shared = 0o077
    given = environ.get("CREDENTIALS_DIRECTORY")
    if given and path.absolute().is_relative_to(given):
        # systemd gives a service its credentials by an access control list, whose mask
        # stands where the group's bits are; only this service can enter the folder.
        shared = 0o007
    if mode & shared:
        raise UsageError(
            f"{SETTING}: expected a file that only its owner can read, got mode"
            f" {stat.S_IMODE(mode):04o}; chmod 600 {path}"
        )
