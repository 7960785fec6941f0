"""The task runner: what runs on the nodes beside a reducer, and what prepares and tests it.

Law: ``runner`` is its source (Python 3.8, standard library, nothing of ours) and alone defines manifests,
requests and answers; everything else imports those from there. ``yarnctl_task.py`` is the one file that is
shipped; ``build`` makes it from ``runner``, and it is neither imported nor edited.
"""
