"""Commands for a running fleet: nodes, alarms, learn and model. They write no store."""
