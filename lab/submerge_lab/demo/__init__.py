"""`submerge demo`: a fleet of real processes on the generated room, and broken. It is the sensors,
the supervisor and the operator of that fleet. The clients and aggregators are the programs that
ship, without a change for the demo. Other commands do not use this folder.
"""
