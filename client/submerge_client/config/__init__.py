"""The configuration of a client: one TOML file becomes frozen structs, one module a section."""
