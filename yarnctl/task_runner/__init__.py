"""The task runner: what runs on the nodes beside a reducer, and what prepares and tests it.

``runner`` is its source (Python 3.8, standard library) and alone defines manifests, requests and answers.
``yarnctl_task.py`` is the one file that is shipped; ``build`` makes it, and it is neither imported nor
edited.
"""
