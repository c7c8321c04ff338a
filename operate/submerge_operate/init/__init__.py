"""`submerge init`: looks where readings come from, and writes the configuration of one machine. It
proposes; a person, or `--yes`, takes it. What it writes is loaded as `submerge up` loads it before
the file is there.
"""
