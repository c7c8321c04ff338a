"""Fields that a machine hears and has no channel for: what is known of them, and how they join.

They are kept in two small files beside the others: `newcomers.json` has what was heard, and
`channels.json` the channels that were accepted, by a person or because `discover = true`. A machine
that gets channels begins again in the same process. What it has learnt of the others stays
(docs/decisions/0045).
"""
