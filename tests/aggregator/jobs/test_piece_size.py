"""A piece of a job's payload, as large as it is by default, fits through every parent."""

from __future__ import annotations

from submerge_aggregator.limits import LEAST
from submerge_proto.wire import jobs
from support.job_table import job


def test_a_piece_fits_the_smallest_limit_of_a_parent():
    """That of a narrow group: what is around a piece counts as well."""
    assert job().piece_bytes + jobs.OVERHEAD <= LEAST
