"""The task runner: what runs on the nodes beside a reducer, and what prepares and tests it.

Law: ``yarnctl_task`` is one file that stands alone (Python 3.8, standard library) and alone
defines manifests, requests and answers; everything else imports those from it.
"""
