"""The program at the edge: sensors in, reports out."""
