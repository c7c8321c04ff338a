"""`submerge demo`: a fleet of real processes on the generated room, broken and checked.

Nothing else imports this folder except for the comparison of models.
"""
