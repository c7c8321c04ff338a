"""What was learnt, as the bytes of a file that is passed from person to person, and back."""
