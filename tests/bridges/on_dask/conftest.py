"""A Dask scheduler with two workers in processes of their own, and an S3 server, for all tests."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

AWS = {
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_DEFAULT_REGION": "us-east-1",
}


@pytest.fixture(scope="session")
def s3() -> Iterator[str]:
    """The address of moto's server; workers that start after it know it by their environment."""
    server = pytest.importorskip("moto.server").ThreadedMotoServer(port=0)
    server.start()
    host, port = server.get_host_and_port()
    known = {name: os.environ.get(name) for name in (*AWS, "AWS_ENDPOINT_URL")}
    os.environ.update(AWS, AWS_ENDPOINT_URL=f"http://{host}:{port}")
    yield os.environ["AWS_ENDPOINT_URL"]
    for name, value in known.items():
        os.environ.pop(name)
        if value is not None:
            os.environ[name] = value
    server.stop()


@pytest.fixture(scope="session")
def dask_client(s3: str) -> Iterator[Any]:  # noqa: ARG001 - workers take over its environment
    """A client of a scheduler with two workers; one that dies is started again."""
    distributed = pytest.importorskip("distributed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with (
            distributed.LocalCluster(
                n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
            ) as cluster,
            distributed.Client(cluster, set_as_default=False) as client,
        ):
            yield client
