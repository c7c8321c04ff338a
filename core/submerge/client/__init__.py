"""The client as a machine without I/O, `node.ClientNode`; `submerge_client` drives it.

A reading goes through `ingest` (`submerge.judge` prepares and scores it), `monitor` (which model
and mean), `alarms.detect` (what is an alarm, what is learnt) and `incarnation` (learns it).
"""
