"""`submerge drill`: what a fleet's alarms would find, and what they would miss. Faults are tried on
copies of rows (`submerge.drill`): of files, by a model, or at nodes.
"""
