"""Clients of Hadoop's daemons, with all of Hadoop's JSON spellings, URLs and version differences.

No JSON key, path of the REST API or version number is used outside this package; records have yarnctl's names
and units.
"""
