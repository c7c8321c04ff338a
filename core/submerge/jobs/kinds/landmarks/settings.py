"""LandmarkSettings: what a person sets of a choice of landmarks, checked."""

from __future__ import annotations

import math
from typing import NamedTuple, get_args

from submerge.errors import UsageError
from submerge.features import Kernel
from submerge.jobs.job import Settings
from submerge.jobs.kind import JobSetting
from submerge.jobs.kinds.kpca.settings import (
    MOST_POINTS,
    KernelName,
    flag_setting,
    kernel_setting,
)
from submerge.jobs.points import seed_of
from submerge.jobs.settings import check_known, number_of, whole_of

UNIFORM, STEPS, NODE_SHARE, MOST_STEPS = 0.25, 3, 0.25, 16

LISTED: tuple[JobSetting, ...] = (
    JobSetting("landmarks", "whole", f"Rows that the fleet chooses, 1 to {MOST_POINTS}."),
    JobSetting("kernel", "text", f"One of {', '.join(get_args(KernelName))}.", "gaussian"),
    JobSetting("gamma", "number", "The kernel's scale.", "from the spread of all rows"),
    JobSetting("degree", "whole", "Of a polynomial kernel.", "2"),
    JobSetting("coef0", "number", "Of a polynomial kernel.", "0"),
    JobSetting("nu", "number", "Of a Matern kernel, 1.5 or 2.5.", "1.5"),
    JobSetting("uniform", "number", "Share of them that is chosen first, all rows alike.", "0.25"),
    JobSetting(
        "steps", "whole", f"Choices after that, by what the earlier miss, to {MOST_STEPS}.", "3"
    ),
    JobSetting(
        "scale", "flag", "Whether channels are centered and scaled before the kernel.", "false"
    ),
    JobSetting("node_share", "number", "Most of them of one participant, as a share.", "0.25"),
)


class LandmarkSettings(NamedTuple):
    """Settings of the kind, as `LISTED` says."""

    seed: int
    landmarks: int
    kernel: Kernel
    uniform: float
    steps: int
    scale: bool
    node_share: float

    @classmethod
    def of(cls, settings: Settings) -> LandmarkSettings:
        """Check a job's settings.

        Raises
        ------
        UsageError
            With one line that says which does not fit.
        """
        check_known(settings, (each.name for each in LISTED))
        if "landmarks" not in settings:
            raise UsageError("landmarks needs the setting landmarks, got none: add landmarks=128")
        return cls(
            seed_of(settings),
            whole_of(settings, "landmarks", 1, least=1, most=MOST_POINTS),
            kernel_setting(settings),
            number_of(settings, "uniform", UNIFORM, most=1.0),
            whole_of(settings, "steps", STEPS, least=1, most=MOST_STEPS),
            flag_setting(settings, "scale", default=False),
            number_of(settings, "node_share", NODE_SHARE, most=1.0),
        )

    @property
    def stages(self) -> tuple[int, ...]:
        """How many rows each choice takes, the uniform one first; none takes 0."""
        first = max(1, math.ceil(self.uniform * self.landmarks))
        rest, steps = self.landmarks - first, self.steps
        later = (rest * (i + 1) // steps - rest * i // steps for i in range(steps))
        return (first, *(size for size in later if size))
