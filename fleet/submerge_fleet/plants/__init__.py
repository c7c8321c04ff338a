"""The generated room that demo and crowd read; other plants are in `benchmarks/plants`."""
