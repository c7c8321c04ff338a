"""Jobs: what a fleet computes in rounds, beside its streams.

A root opens a job and asks its children for a contribution, round after round; aggregators merge
what their children give; clients hold the points. Machines without I/O, as the two nodes are:
`effects = role.step(event, now)`. A job changes no ledger and no model.

    root.JobRoot, relay.JobRelay, member.JobMember    the three roles
    kinds                                             what is computed: each kind is pure
    here.run_here                                     the same job on rows in one process

docs/decisions/0057 says what becomes of those who leave.
"""
