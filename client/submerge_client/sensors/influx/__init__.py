"""Metrics of Telegraf as rows: Influx line protocol, names, rows by timestamp, and the way on."""
