"""What only a root does: settle what a schema leaves open and the rank, and make models of rows."""
