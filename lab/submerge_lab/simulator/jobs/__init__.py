"""Jobs in virtual time, with failures: `run_jobs(plan, seed)`. An oracle holds each outcome against
the invariants J1 to J6.
"""

from submerge_lab.simulator.jobs.plan import JOB_PRESETS, JobPlan
from submerge_lab.simulator.jobs.run import JobSeedOutcome, run_jobs

__all__ = ["JOB_PRESETS", "JobPlan", "JobSeedOutcome", "run_jobs"]
