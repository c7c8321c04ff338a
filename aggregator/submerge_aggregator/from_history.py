"""aggregator_text(): a short configuration of a root, with all that a history settles filled in.

The other settings have their defaults, or those of the sample. Clients of
`submerge client init --from` reach it.
"""

from __future__ import annotations

from submerge_client.config.from_history import PARENT, LearntSettings
from submerge_client.config.sections import written
from submerge_client.config.toml_text import quoted

AGGREGATOR = """\
# A root of submerge: channels, scaling and rank of its group are those of {source}.
# `submerge aggregator --config FILE` starts from this file; `submerge aggregator init` prints a
# sample with every setting.

# Its name: the same for ever, and no other node's.
node = "{node}"
# The database of all that it has acknowledged: keep it on a disk that lasts.
store = "{node}.db"

# How children reach it. Without TLS, others on the network can read and forge messages: between
# machines, say kit = "FILE" above and address = "0.0.0.0:8470", and delete insecure.
[listen.grpc]
address = "127.0.0.1:8470"
insecure = true

{sections}"""


def aggregator_text(learnt: LearntSettings) -> str:
    """Return a root's configuration as TOML."""
    return AGGREGATOR.format(
        source=quoted(learnt.source),
        node=PARENT,
        sections=learnt.sections(under=f"{written(('groups', learnt.group))}."),
    )
