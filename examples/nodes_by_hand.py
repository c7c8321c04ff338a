"""A client and a root in one process, for an hour: what a driver does for nodes.

Nodes do no I/O. A driver performs their effects in order (`Keep` writes, `Send` carries), and
wakes them at the time that they ask for. Here a dict is the disk, a queue is the network, and
nothing fails. If a `Keep` fails, a driver performs none of the effects after it, and starts
another node from what is stored.
"""

from collections import deque

import numpy as np

from submerge import Schema
from submerge.nodes import (
    AggregatorNode,
    AggregatorSettings,
    ClientNode,
    ClientSettings,
    GroupPlan,
    Keep,
    Now,
    Publish,
    Reading,
    Received,
    Scored,
    Send,
    Start,
    Subspaces,
    Tick,
)

schema, summaries = Schema.anonymous(20), Subspaces(3)
# Each node has a generator of its own: names and waits must never be the same twice.
nodes = {
    "pump": ClientNode(
        ClientSettings("pump", "pumps", "root"), schema, summaries, np.random.default_rng()
    ),
    "root": AggregatorNode(
        AggregatorSettings("root", None),
        {"pumps": GroupPlan(summaries, schema)},
        np.random.default_rng(),
    ),
}
disks = {name: {} for name in nodes}
todo = deque((name, Start({})) for name in nodes)
scored = []

rng = np.random.default_rng(0)
causes = rng.standard_normal((3, 20))
for second in range(3600):
    rows = rng.standard_normal((1, 3)) @ causes + 0.1 * rng.standard_normal((1, 20))
    todo.append(("pump", Reading(rows)))
    while todo:
        name, event = todo.popleft()
        for effect in nodes[name].step(event, Now(steady=second, wall=1.7e9 + second)):
            if isinstance(effect, Keep):
                disk = {} if effect.new_store else disks[name]
                disk |= effect.records  # a real one: in one transaction, on disk before we go on
                disks[name] = {key: record for key, record in disk.items() if record is not None}
            elif isinstance(effect, Send):
                todo.append((effect.to, Received(effect.message)))
            elif isinstance(effect, Publish):
                todo.append(("pump", Received(effect.message)))
            elif isinstance(effect, Scored):
                scored.extend(effect.scores.spe)
        if not todo:
            todo.extend((name, Tick()) for name in nodes if nodes[name].wakes_at <= second)

model = nodes["pump"].model
limit = dict(zip(model.limits.shares, model.limits.spe, strict=True))[0.99]
print(f"{second + 1} readings; the newest model counts {model.counts.learnt} of them")
print(f"{len(scored)} were scored, by the model of the time, before they were learnt")
print(f"99 % of the recent ones stayed below SPE {limit:.2f}")
