"""The configuration of a client: one TOML file becomes frozen structs, one module a section.

`client_config` is the whole. `tomlfile`, `tomlfile`, `sections` and `sections` turn each mistake
into one line; the aggregator uses them, too. Nothing is opened here but the file itself.
"""
