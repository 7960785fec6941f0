"""Papers, studies, benches and campaigns around yarnctl: what measures the product and is not part of it.

Law: nothing of ``yarnctl`` or ``emulator`` imports this package. ``campaigns`` and ``bench`` need a checkout:
they stand on ``tests.hadoop``, the launcher of a real Hadoop.
"""
