"""What was learnt, as the bytes of a file that is passed from person to person, and back.

A model file may come from anywhere: it is checked as strictly as a message, and a damaged one is
refused in one line. Files are not opened here.
"""
