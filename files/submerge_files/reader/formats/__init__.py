"""Files of one format each: text, Parquet and Arrow, NumPy's; here or on a remote file system."""
