"""Other worlds: models as programs, Dask, river, PyOD."""
