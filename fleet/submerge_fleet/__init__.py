"""The operator's side: the `submerge` command, and what its subcommands do."""
