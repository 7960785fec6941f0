"""Decode Hadoop's JSON and interpret it.

Law: pure: no connection, no file, no clock; bytes or records in, records out. Fields that identify a thing
have no default, so that an error page in JSON is never taken for an answer. Hadoop's spellings, units and
version quirks end here. The contract "hadoop: clients stand on HTTP" in pyproject.toml checks that wire/
imports neither.
"""
