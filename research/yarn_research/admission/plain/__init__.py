"""The engine that any mechanism runs on: one trace, event by event, in plain Python.

Law: pure and exact: doubles are combined in one fixed order, which the compiled counterpart keeps. It is
the reference: where the two differ, this one is right. It imports traces/ and `yarnctl.deciding`;
tests/unit/admission compares both job by job.
"""
