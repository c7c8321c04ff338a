"""Statistics of a node's readings and scores, apart from the subspace. Nothing here decides."""
