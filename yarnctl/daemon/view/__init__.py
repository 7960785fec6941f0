"""The published state of the daemon: one immutable value per tick.

Law: it reads the controller and the journal's records and changes neither; a request thread reads the
published value and nothing else of the loop. The contract "daemon: the loop stands on the view" checks that
it imports no loop.
"""
