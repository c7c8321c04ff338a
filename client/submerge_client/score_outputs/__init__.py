"""Places for scores: several of them as one (`lines`), and metrics for Telegraf (`metrics`)."""
