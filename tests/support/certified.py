"""An authority of one's own, and kits of its nodes, renewed in place."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography.hazmat.primitives.serialization import load_pem_private_key

from submerge.protocol.permission import Permission
from submerge_client.kit import read_kit
from submerge_operate.pki.authority import Authority, host_of
from submerge_operate.pki.directory import HEAD, text_of

LOOPBACK = "127.0.0.1"


class Certified:
    """A folder of kits.

    Parameters
    ----------
    folder : Path
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)
        # A day before: one may ask for a kit that has ended.
        now = datetime.now(UTC) - timedelta(days=1)
        self.authority = Authority.create("test", now=now, lasts=timedelta(days=10))

    def kit(
        self,
        node: str,
        *hosts: str,
        lasts_s: float = 3600.0,
        permission: Permission | None = None,
        key_of: Path | None = None,
    ) -> Path:
        """Make a node's kit, or renew it; by default one without a role, and with a new key."""
        key = None if key_of is None else load_pem_private_key(read_kit(key_of).key, None)
        certified = self.authority.certify(
            node,
            tuple(host_of(host) for host in hosts),
            permission,
            now=datetime.now(UTC),
            lasts=timedelta(seconds=lasts_s),
            key=key,  # type: ignore[arg-type]
        )
        return self._put(node, text_of(certified, self.authority))

    def write(self, name: str, node: str, *parts: bytes) -> Path:
        """Put a kit together by hand."""
        head = f"{HEAD}\nnode: {node}\n".encode()
        return self._put(name, head + b"".join(parts))

    def _put(self, name: str, text: bytes) -> Path:
        path, new = self.folder / f"{name}.kit", self.folder / f"{name}.new"
        new.write_bytes(text)
        new.replace(path)
        return path
