"""Places for scores: several of them as one (`several`), and metrics for Telegraf (`metrics`).

Score lines are made in `scores`, and published in `scores_mqtt`.
"""
