"""Beside the aggregator's own gRPC methods: the health service, and unknown methods."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import grpc
from google.protobuf.message import DecodeError
from grpc_health.v1 import health, health_pb2

MOST_WATCHING = 64
"""Streams of the health service: load balancers hold some, and children none."""


class Health(health.aio.HealthServicer):  # type: ignore[misc]
    """The standard health service; `read` returns the request of a call, or ends the call."""

    _watching = 0

    def __init__(self, read: Callable[[Any], Awaitable[bytes]]) -> None:
        super().__init__()
        self._read = read

    def handlers(self) -> Any:
        """Return its handlers; as streams, so that we read the requests ourselves."""
        form = health_pb2.HealthCheckResponse.SerializeToString
        methods = {
            "Check": grpc.stream_unary_rpc_method_handler(self._check, None, form),
            "Watch": grpc.stream_stream_rpc_method_handler(self._watch, None, form),
        }
        return grpc.method_handlers_generic_handler(health.SERVICE_NAME, methods)

    async def _check(self, _: Any, context: Any) -> Any:
        return await self.Check(await self._request(context), context)

    async def _watch(self, _: Any, context: Any) -> None:
        request = await self._request(context)
        if self._watching >= MOST_WATCHING:
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "too many health watches")
        self._watching += 1
        try:
            await self.Watch(request, context)
        finally:
            self._watching -= 1

    async def _request(self, context: Any) -> Any:
        try:
            return health_pb2.HealthCheckRequest.FromString(await self._read(context))
        except (DecodeError, UnicodeDecodeError):
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "expected a service's name")


class Unknown(grpc.GenericRpcHandler):  # type: ignore[misc]
    """Handles what no other handler does; `refuses` gets each call, and its method."""

    def __init__(self, refuses: Callable[[Any, str], object]) -> None:
        self._refuses = refuses

    def service(self, call: Any) -> Any:
        """Answer that there is no such method, without reading the message."""

        async def answer(_: Any, context: Any) -> None:
            self._refuses(context, call.method)
            await context.abort(grpc.StatusCode.UNIMPLEMENTED, "Method not found!")

        return grpc.stream_stream_rpc_method_handler(answer)
