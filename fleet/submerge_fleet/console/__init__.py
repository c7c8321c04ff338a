"""What several commands share: the way to an aggregator, progress, pictures, units, options."""
