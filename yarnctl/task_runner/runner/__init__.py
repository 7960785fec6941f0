"""The source of the task runner: what runs on a node beside a reducer, and what it leaves in the store.

Standard library only, Python 3.8 or newer; nothing outside this package is imported, and importing it has no
side effects. The product and the tests import from here, never from the shipped file.
"""
