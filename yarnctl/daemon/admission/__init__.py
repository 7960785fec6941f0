"""Admission control on a cluster: requests in, plans out, reservations kept until they are used or expire.

Law: it submits, kills and moves nothing, and works while yarnctl only observes. Every change of its state
is a record of the journal, made first and then applied. Threads meet in `request_queue` and
`history_worker` only; all else runs on the loop. The contract "daemon: the loop stands on the view" checks
that it imports neither loop nor guards.
"""
