"""Files of one format each: text, Parquet and Arrow, NumPy's; here or on a remote file system. All
look alike to those who choose columns and read rows: `tables.TableFile`. `readers` chooses the
reader by a file's first bytes. Nothing here knows which column holds the times.
"""
