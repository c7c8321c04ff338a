"""The drill: which faults would raise an alarm, tried on copies of rows.

1. `drill`: what a fault adds to the readings of a channel, row by row.
2. `response`: the scores of rows whose channel is off by given amounts.
3. `detection`: in which spans of rows these scores raise an alarm.
4. `drill`: the smallest fault of each kind that is found, channel by channel.

Nothing is learnt, no alarm is raised, and no argument is changed.
"""
