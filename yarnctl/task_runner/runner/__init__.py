"""The source of the task runner: what runs on a node beside a reducer, and what it leaves in the store.

Law: standard library only, Python 3.8 or newer; nothing outside this package is imported, and importing it
has no side effects. ``yarnctl.task_runner.build`` makes of it the one file that is shipped. The product and
the tests import from here, never from the shipped file.
"""
