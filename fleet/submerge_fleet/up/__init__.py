"""`submerge up`: one machine watches itself: a client and its root in one process, one file."""
