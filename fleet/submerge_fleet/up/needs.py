"""missing_packages(): what to install, where a machine's packages are not there."""

from __future__ import annotations

import click

PACKAGES = {"google": "protobuf", "grpc": "grpcio", "grpc_health": "grpcio-health-checking"}
"""Packages whose modules have other names."""


def missing_packages(error: ImportError) -> click.UsageError:
    """Return a refusal in one line; a package that is there and broken is as good as none."""
    module = (error.name or "a package").partition(".")[0]
    package = PACKAGES.get(module, module.replace("_", "-"))
    return click.UsageError(
        f"a machine needs {package}, which is not installed:"
        " pip install 'submerge[aggregator]', and [host] for its own figures"
    )
