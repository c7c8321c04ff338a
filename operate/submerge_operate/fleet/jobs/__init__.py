"""`job` and `jobs`: what a fleet computes in rounds, opened, followed, and its answer as files."""
