"""The client as a machine without I/O, `node.ClientNode`; `submerge_client` drives it.

A reading goes through `ingest`, `monitor`, `alarms.detect` and `incarnation`, which learns it.
"""
