"""`submerge nodes settings` and `submerge nodes scores`: one node is asked, wherever it is."""
