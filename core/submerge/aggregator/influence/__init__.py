"""How far each node may move a group's model: ages, bounds, and the children that are left out.

The formulas are in `submerge.robust`; here they meet an aggregator's children. Nothing is counted
or acknowledged here, and no row is changed.
"""
