"""`job` and `jobs`: what a fleet computes in rounds, opened, followed, and its answer as files. It
computes nothing: `submerge.jobs` does, in the fleet or, for files, in this process.
"""
