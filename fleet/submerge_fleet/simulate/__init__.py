"""`submerge simulate`: fleets in virtual time; the simulator itself is `submerge.simulate`."""
