"""A real cluster as a ClusterPort: ``port.AttachedPort`` over Hadoop's REST.

It changes nothing unless the settings enforce, and ends an attempt only when a valid manifest shows that
nothing is lost, or where ``--kill-on-timeout`` allows the loss. A job without proof is left alone.
"""
