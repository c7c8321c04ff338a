"""Jobs: what a fleet computes in rounds, beside its streams; no ledger and no model changes."""
