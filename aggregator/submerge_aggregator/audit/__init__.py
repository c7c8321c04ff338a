"""The audit log: who joined, who was refused, and what operators ordered, in files of JSON lines.

`entries` makes and reads lines, `files` keeps and rotates them, `log` writes them from a thread of
its own. It follows what the machine has committed, and changes nothing.
"""
