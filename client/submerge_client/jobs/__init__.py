"""Jobs at a client: the rows that it holds for them, and the thread that answers its parent.

A job computes something over the rows of a whole fleet, in rounds (`submerge.jobs`). It takes no
time from the loop that reads, scores and reports: its thread exists only while there is a job.

    held_rows.HeldSample     a uniform sample of scaled, complete rows of the present schema
    member_thread.ClientJobs drives the client's part, `submerge.jobs.member.JobMember`
"""
