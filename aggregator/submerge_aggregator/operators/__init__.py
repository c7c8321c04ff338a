"""Operators over the network: who they are, what each may do, and what is recorded of it.

`scopes` has the table of what each route needs. `tokens` and `identify` say who asks, by a token
or by a certificate; `access` stands before the admin API, and lets through what is allowed. The
socket beside the store goes through it, too: a user who may open it may do everything.
"""
