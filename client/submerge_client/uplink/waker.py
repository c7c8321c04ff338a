"""Waker: one thread wakes another that waits for sockets."""

from __future__ import annotations

import socket
import threading


class Waker:
    """A socket for a selector to watch. It holds one byte at most, however often it is rung."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rung = False
        self._inner, self._outer = socket.socketpair()

    def fileno(self) -> int:
        """Return the descriptor for the selector."""
        return self._inner.fileno()

    def ring(self) -> None:
        """Wake the waiting thread, from any thread."""
        with self._lock:
            if not self._rung and self._outer.fileno() >= 0:
                self._rung = True
                self._outer.send(b"!")

    def hush(self) -> None:
        """Take the byte out: the next `ring` wakes again."""
        with self._lock:
            if self._rung:
                self._inner.recv(1)
                self._rung = False

    def close(self) -> None:
        """Close both sockets; later calls of `ring` do nothing."""
        with self._lock:
            self._inner.close()
            self._outer.close()
