"""Kit: one file that makes a node known, as `submerge pki issue` writes it.

A few lines for people, then PEM: the node's key, its certificate, and those of the authority
that its fleet trusts. One file is easy to put on a card, to hand to systemd as a credential,
and to replace as a whole: nobody ever sees a new certificate beside an old key.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from submerge import UsageError
from submerge.protocol.names import NAME

HEAD = "submerge kit 1"

LARGEST = 64 << 10
"""Bytes; a kit has some 2,000."""

_BLOCK = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----\n.*?-----END \1-----\n?", re.DOTALL)
_NODE = re.compile(rf"^node: ({NAME})$", re.MULTILINE)


class Kit(NamedTuple):
    """What a kit holds.

    Attributes
    ----------
    node : str
        Whose it says that it is; the certificate is what proves it.
    key, cert, authority : bytes
        PEM.
    """

    node: str
    key: bytes
    cert: bytes
    authority: bytes


def read_kit(path: Path) -> Kit:
    """Return what a kit file holds.

    Raises
    ------
    UsageError
        If it cannot be read, or is none.
    """
    try:
        with path.open("rb") as file:
            text = file.read(LARGEST).decode("ascii")
    except OSError as error:
        raise UsageError(f"expected a kit to read, got {path}: {error.strerror}") from error
    except UnicodeDecodeError:
        raise _none(path, "bytes that are no text") from None
    text = text.replace("\r\n", "\n")
    keys = [block[0] for block in _BLOCK.finditer(text) if block[1].endswith("PRIVATE KEY")]
    certs = [block[0] for block in _BLOCK.finditer(text) if block[1] == "CERTIFICATE"]
    node = _NODE.search(text)
    if not text.startswith(HEAD) or node is None:
        raise _none(path, "a file that begins otherwise")
    if len(keys) != 1 or len(certs) < 2:
        raise _none(path, f"{len(keys)} keys and {len(certs)} certificates")
    return Kit(
        node[1],
        key=keys[0].encode(),
        cert=certs[0].encode(),
        authority="".join(certs[1:]).encode(),
    )


def _none(path: Path, got: str) -> UsageError:
    return UsageError(f"expected a kit, as `submerge pki issue` writes it, got {got} in {path}")
