"""Beside the aggregator's own methods: the health service, and what is asked of nobody."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import grpc
from google.protobuf.message import DecodeError
from grpc_health.v1 import health, health_pb2


class Health(health.aio.HealthServicer):  # type: ignore[misc]
    """The standard health service; `asked` reads the request of each call, or ends it."""

    def __init__(self, asked: Callable[[Any], Awaitable[bytes]]) -> None:
        super().__init__()
        self._asked = asked

    def handlers(self) -> Any:
        """Return what answers; as streams, so that we are the ones who read."""
        form = health_pb2.HealthCheckResponse.SerializeToString
        methods = {
            "Check": grpc.stream_unary_rpc_method_handler(self._check, None, form),
            "Watch": grpc.stream_stream_rpc_method_handler(self._watch, None, form),
        }
        return grpc.method_handlers_generic_handler(health.SERVICE_NAME, methods)

    async def _check(self, _: Any, context: Any) -> Any:
        return await self.Check(await self._request(context), context)

    async def _watch(self, _: Any, context: Any) -> None:
        await self.Watch(await self._request(context), context)

    async def _request(self, context: Any) -> Any:
        try:
            return health_pb2.HealthCheckRequest.FromString(await self._asked(context))
        except (DecodeError, UnicodeDecodeError):
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "expected a service's name")


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
