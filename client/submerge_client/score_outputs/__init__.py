"""Places for scores: several of them as one (`lines`), and metrics for Telegraf (`metrics`).

Score lines are made in `lines`, and published by `publisher`.
"""
