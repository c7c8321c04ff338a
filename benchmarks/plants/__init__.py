"""Generated fleets whose faults are known (docs/plants.md). Nothing that ships uses them."""
