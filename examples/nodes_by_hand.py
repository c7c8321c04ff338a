"""A client and a root in one process: what a driver does for them, in thirty lines.

Nodes do no I/O. Whoever drives them performs their effects in order: `Keep` writes, `Send`
carries. Here a dict is the disk, and a queue the network.
"""

from collections import deque

import numpy as np

from submerge import Schema
from submerge.aggregator_node import AggregatorNode
from submerge.client_node import ClientNode
from submerge.group import GroupPlan
from submerge.settings import AggregatorSettings, ClientSettings
from submerge.steps import Flush, Keep, Now, Publish, Reading, Received, Scored, Send, Start
from submerge.summaries import Subspaces

rng = np.random.default_rng(0)
schema, summaries = Schema.anonymous(20), Subspaces(3)
nodes = {
    "pump": ClientNode(ClientSettings("pump", "pumps", "root"), schema, summaries, rng),
    "root": AggregatorNode(
        AggregatorSettings("root", None), {"pumps": GroupPlan(summaries, schema)}, rng
    ),
}
disks = {name: {} for name in nodes}
todo = deque((name, Start(disks[name])) for name in nodes)
causes = rng.standard_normal((3, 20))
scored = []

for second in range(601):
    rows = rng.standard_normal((1, 3)) @ causes + 0.1 * rng.standard_normal((1, 20))
    todo.append(("pump", Reading(rows)))
    if second % 200 == 199:
        todo.append(("pump", Flush()))  # report now, not in five minutes
    if second % 200 == 0:
        todo.append(("root", Flush()))  # and make a model of it
    while todo:
        name, event = todo.popleft()
        for effect in nodes[name].step(event, Now(steady=second, wall=1.7e9 + second)):
            if isinstance(effect, Keep):
                disks[name].update(effect.records)
            elif isinstance(effect, Send):
                todo.append((effect.to, Received(effect.message)))
            elif isinstance(effect, Publish):
                todo.append(("pump", Received(effect.message)))
            elif isinstance(effect, Scored):
                scored.extend(effect.spe)

model = nodes["pump"].model
print(f"the model counts {model.counts.learnt} readings, version {model.version}")
print(f"{len(scored)} readings were scored before they were learnt")
print(f"99 % of them stayed below SPE {model.limits.spe[1]:.2f}")
