"""A real cluster as a ClusterPort: ``port.AttachedPort`` over Hadoop's REST.

Law: it shows only what can be read over REST, changes nothing unless the settings enforce, and ends an
attempt only when a valid manifest shows that nothing is lost, or where ``--kill-on-timeout`` allows the
loss. A job without proof is left alone.
Reading order: ``connection`` (settings, clients), ``port`` (the whole), ``observing``, ``eligibility`` (which
jobs may be touched at all), ``orders`` (``tracking``: facts; ``performing``: changes).
"""
