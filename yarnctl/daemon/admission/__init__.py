"""Admission control on a cluster: it plans requests, and keeps reservations until they are used or expire.

Law: it submits, kills and moves nothing, and works while yarnctl only observes. Every change of its state
is a record of the journal, made first and then applied. Only `request_queue` and `history_worker` are shared
between threads; the rest runs on the loop. The contract "daemon: the loop stands on the view" checks
that it imports neither loop nor guards.
"""
