"""Rows on a cluster: Spark starts the tasks, and the tasks read and write files that all machines reach.

No row passes through Spark itself. A task is a number that Spark hands to a worker; the worker finds its work in a file
of the run's folder, reads its slice of the rows, and answers with a few bytes, or with states that further tasks merge.
Only DataFrames are used, no RDDs, so that Spark Connect will do.

A task may run twice, and a worker may die: every attempt writes under names of its own, Spark hands on the answer of one
attempt, and only files that an answer names are ever read.

    replies   what tasks are told and what they answer, as bytes
    files     rows in files, and slices of rows
    tasks     what a task does
    worker    how a worker does it
    jobs      many tasks, their answers, progress, Ctrl-C
    session   Spark itself, and tables on their way to it
    engine    the verbs
    queries   a table of Spark SQL, for ``verify``; here alone Spark reads rows itself
    apply     further rows recoded by tasks
"""
