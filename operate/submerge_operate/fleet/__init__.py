"""Commands for a running fleet: nodes, alarms, learn and model. They ask an aggregator through
`console.admin_client` and print what it answers. They decide nothing, and write no store.
"""
