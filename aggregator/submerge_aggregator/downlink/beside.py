"""Beside the aggregator's own methods: the health service, and what is asked of nobody."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import grpc
from grpc_health.v1 import health


class Health(health.aio.HealthServicer):  # type: ignore[misc]
    """The standard health service; `called` hears of each call."""

    def __init__(self, called: Callable[[Any], object]) -> None:
        super().__init__()
        self._called = called

    async def Check(self, request: Any, context: Any) -> Any:  # noqa: N802 (gRPC's own name)
        """Say how a service is."""
        self._called(context)
        return await super().Check(request, context)

    async def Watch(self, request: Any, context: Any) -> None:  # noqa: N802
        """Say so again whenever it changes."""
        self._called(context)
        await super().Watch(request, context)


class Unknown(grpc.GenericRpcHandler):  # type: ignore[misc]
    """What no other handler knows; it is asked last. `refuses` hears of each call, and of what."""

    def __init__(self, refuses: Callable[[Any, str], object]) -> None:
        self._refuses = refuses

    def service(self, call: Any) -> Any:
        """Answer that there is no such method, whatever is sent to it."""

        async def answer(_: Any, context: Any) -> None:
            self._refuses(context, call.method)
            await context.abort(grpc.StatusCode.UNIMPLEMENTED, "Method not found!")

        return grpc.stream_stream_rpc_method_handler(answer)
