"""Jobs at an aggregator: what drives its part, and who hears how jobs go."""
