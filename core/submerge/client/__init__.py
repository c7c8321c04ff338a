"""The client as a machine without I/O: `node.ClientNode` and its parts.

It takes readings and messages in `step(event, now)` and returns effects. It opens nothing and
reads no clock; `submerge_client` drives it. A reading goes through `ingest` (`submerge.judge`
prepares and scores it), `monitor` (which model and which mean), `alarms.detect` (what is an alarm,
and what is learnt) and `incarnation` (which learns it).
"""
