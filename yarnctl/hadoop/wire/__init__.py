"""Decode Hadoop's JSON and interpret it: bytes or records in, records out.

Fields that identify a thing have no default, so that an error page in JSON is never taken for an answer.
"""
