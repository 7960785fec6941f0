"""Admission control on a cluster: it plans requests, and keeps reservations until they are used or expire.

It submits, kills and moves nothing, and works while yarnctl only observes. Only `request_queue` and
`history_worker` are shared between threads; the rest runs on the loop.
"""
