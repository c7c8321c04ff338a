"""Generated fleets with known faults (docs/plants.md). No shipped package uses them."""
