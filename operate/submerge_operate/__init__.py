"""The operator's side: the `submerge` command and its subcommands.

No device needs this package to run. `submerge client` and `submerge aggregator` are only named
here; their code is in their own packages.
"""
