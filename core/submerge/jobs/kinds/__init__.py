"""The kinds of jobs, by name. A kind is a file here, and a line below."""

from __future__ import annotations

from typing import Any

from submerge.errors import UsageError
from submerge.jobs.job import Job, Settings
from submerge.jobs.kind import COMMON_SETTINGS, JobKind, JobSetting, MakeKind
from submerge.jobs.kinds.cluster import ClusterJob
from submerge.jobs.kinds.kmeans import KMeansJob
from submerge.jobs.kinds.kpca.job import KernelPcaJob, NystromJob
from submerge.jobs.kinds.landmark_job import LandmarksJob
from submerge.jobs.kinds.moments import MomentsJob
from submerge.jobs.masks import MASKED, MaskedJob

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
    if is_masked(job.settings) and not job.exact:
        raise UsageError("masks are gone from sums of all nodes alone: a masked job is exact")
    return made(job.kind, job.settings, job.width, job.id)


def made(kind: str, settings: Settings, width: int, job: str, **more: int) -> JobKind:
    """Return a kind by name, masked for the job of a name if its settings say so."""
    make = KINDS.get(kind)
    if make is None:
        raise UsageError(f"a job is one of {', '.join(KINDS)}, got {kind}")
    found: Any = make(settings, width)  # only kinds that add up know the setting
    return MaskedJob(found, job, **more) if is_masked(settings) else found


def is_masked(settings: Settings) -> bool:
    return settings.get(MASKED.name) is True


def settings_of(kind: str) -> tuple[JobSetting, ...]:
    """Return the settings that a kind knows: its own, then those of all kinds."""
    return (*KINDS[kind].listed, *COMMON_SETTINGS)
