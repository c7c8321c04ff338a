"""Commands as a shell would run them, and a house that they can ask without a network."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from submerge_aggregator.questions.views import socket_of
from submerge_files.console import ways
from submerge_operate import cli
from support.house import House, Response


class Ran(NamedTuple):
    status: int
    out: str
    err: str


def shell(monkeypatch: Any, capsys: Any, *first: str) -> Callable[..., Ran]:
    """Return what runs `submerge` with arguments, behind those that are always first."""

    def run(*arguments: object) -> Ran:
        monkeypatch.setattr("sys.argv", ["submerge", *first, *map(str, arguments)])
        try:
            cli.main()
            status = 0
        except SystemExit as exit_:
            status = int(exit_.code or 0)
        out, err = capsys.readouterr()
        return Ran(status, out, err)

    return run


def stands_at_its_socket(house: House, monkeypatch: Any) -> None:
    """Have commands that ask by the socket of a house's store reach the house."""

    class Connection:
        """As http.client's, as far as `ways` uses it."""

        def __init__(self, path: Path) -> None:
            self._path = path

        def request(
            self, method: str, target: str, body: bytes | None = None, headers: object = None
        ) -> None:
            if self._path != socket_of(house.store):
                raise ConnectionRefusedError(self._path)
            self._answer: Response = house.asks(method, target, body or b"")

        def getresponse(self) -> Any:
            return self

        @property
        def status(self) -> int:
            return self._answer.status

        def read(self) -> bytes:
            return self._answer.body

        def close(self) -> None:
            pass

    monkeypatch.setattr(ways, "_OverUnix", Connection)
