"""A real cluster behind the border: ``port.AttachedPort`` is the ClusterPort over Hadoop's REST.

Law: it shows only what can be seen from outside, changes nothing unless told to enforce, and stops an
attempt only when a valid manifest says that nothing is lost. Whatever cannot be proven is left alone.
Reading order: ``settings``, ``port`` (the whole), then ``cluster_look`` and ``task_look`` (observing),
``watch`` (facts), ``acting`` (performing), ``proof`` (which jobs may be touched at all).
"""
