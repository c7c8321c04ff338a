"""Jobs at an aggregator: what drives its part, and who hears how jobs go.

A root opens jobs, an aggregator with a parent passes them on (`submerge.jobs`). Here are the
thread that computes, the messages to parent and children, and the records of jobs under way.

    runtime.JobRuntime     drives the part
    runtime.JobEffects     performs what the part wants done
    runtime.JobInbox       messages that wait, with limits
    runtime.children_of    who is asked
    board.JobBoard         hears of openings, rounds and ends
"""
