"""The kinds of jobs, by name. A kind is a file here, and a line below."""

from __future__ import annotations

from submerge.errors import UsageError
from submerge.jobs.job import Job
from submerge.jobs.kind import COMMON_SETTINGS, JobKind, JobSetting, MakeKind
from submerge.jobs.kinds.cluster import ClusterJob
from submerge.jobs.kinds.kmeans import KMeansJob
from submerge.jobs.kinds.kpca.job import KernelPcaJob, NystromJob
from submerge.jobs.kinds.landmark_job import LandmarksJob
from submerge.jobs.kinds.moments import MomentsJob

KINDS: dict[str, MakeKind] = {
    "kmeans": KMeansJob,
    "cluster": ClusterJob,
    "moments": MomentsJob,
    "kpca": KernelPcaJob,
    "nystrom": NystromJob,
    "landmarks": LandmarksJob,
}


def kind_of(job: Job) -> JobKind:
    """Return the kind of a job, with its settings; UsageError if this version knows none."""
    make = KINDS.get(job.kind)
    if make is None:
        raise UsageError(f"a job is one of {', '.join(KINDS)}, got {job.kind}")
    return make(job.settings, job.width)


def settings_of(kind: str) -> tuple[JobSetting, ...]:
    """Return the settings that a kind knows: its own, then those of all kinds."""
    return (*KINDS[kind].listed, *COMMON_SETTINGS)
