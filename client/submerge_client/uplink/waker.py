"""Bell: one thread wakes another that waits for sockets."""

from __future__ import annotations

import socket
import threading


class Waker:
    """Something for a selector to watch; however often it is rung, it holds one byte."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rung = False
        self._inner, self._outer = socket.socketpair()

    def fileno(self) -> int:
        """Return what the selector watches."""
        return self._inner.fileno()

    def ring(self) -> None:
        """Wake whoever waits, from any thread."""
        with self._lock:
            if not self._rung and self._outer.fileno() >= 0:
                self._rung = True
                self._outer.send(b"!")

    def hush(self) -> None:
        """Get ready to be rung again."""
        with self._lock:
            if self._rung:
                self._inner.recv(1)
                self._rung = False

    def close(self) -> None:
        """Ring no more."""
        with self._lock:
            self._inner.close()
            self._outer.close()
