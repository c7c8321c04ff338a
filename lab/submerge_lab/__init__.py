"""The laboratory: demo, replay, crowds, simulated fleets, plans and generated plants."""
