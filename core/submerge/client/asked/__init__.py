"""What a parent asks of a client. That is drills, and questions of operators."""
