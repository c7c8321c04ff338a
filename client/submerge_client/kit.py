"""Kit: a node's identity in one PEM file, with lines for people, as `submerge pki issue` writes it.

It has key, certificate and authority, replaced as a whole: never a new certificate and an old key.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

from submerge import UsageError
from submerge.protocol.names import NAME

HEAD = "submerge kit 1"

LARGEST = 64 << 10  # most bytes; a kit has some 2,000

_BLOCK = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----\n.*?-----END \1-----\n?", re.DOTALL)
_NODE = re.compile(rf"^node: ({NAME})$", re.MULTILINE)


class Kit(NamedTuple):
    """The content of a kit in PEM; the certificate proves the node that it names."""

    node: str
    key: bytes
    cert: bytes
    authority: bytes

    def with_certificate(self, text: bytes, certificate: bytes) -> bytes:
        """Return the kit's `text` with another certificate, and without a line on its end."""
        head, own, rest = text.replace(b"\r\n", b"\n").partition(self.cert)
        lines = [each for each in head.splitlines(keepends=True) if not each.startswith(b"until:")]
        return b"".join(lines) + certificate.strip() + b"\n" + rest if own else text


def renewed_place(kit: Path) -> Path:
    """Return where a kit is renewed: in its place, or where systemd lends it, in the state."""
    lent, state = os.environ.get("CREDENTIALS_DIRECTORY"), os.environ.get("STATE_DIRECTORY")
    if lent and state and kit.is_relative_to(lent):
        return Path(state.partition(":")[0], f"renewed-{kit.name}")
    return kit


def in_use(kit: Path) -> Path:
    """Return a kit, or what has come in its place since."""
    renewed = renewed_place(kit)
    return renewed if renewed.exists() else kit


def read_kit(path: Path) -> Kit:
    """Return the content of a kit file; raises UsageError if it cannot be read, or is no kit."""
    try:
        with path.open("rb") as file:
            text = file.read(LARGEST).decode("ascii")
    except OSError as error:
        raise UsageError(f"expected a kit to read, got {path}: {error.strerror}") from error
    except UnicodeDecodeError:
        raise unfit(path, "bytes that are no text") from None
    text = text.replace("\r\n", "\n")
    keys = [block[0] for block in _BLOCK.finditer(text) if block[1].endswith("PRIVATE KEY")]
    certs = [block[0] for block in _BLOCK.finditer(text) if block[1] == "CERTIFICATE"]
    node = _NODE.search(text)
    if not text.startswith(HEAD) or node is None:
        raise unfit(path, "a file that begins otherwise")
    if len(keys) != 1 or len(certs) < 2:
        raise unfit(path, f"{len(keys)} keys and {len(certs)} certificates")
    return Kit(
        node[1], key=keys[0].encode(), cert=certs[0].encode(), authority="".join(certs[1:]).encode()
    )


def unfit(path: Path, got: str) -> UsageError:
    return UsageError(f"expected a kit, as `submerge pki issue` writes it, got {got} in {path}")
