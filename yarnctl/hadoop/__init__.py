"""Hadoop's room: the only place that knows its JSON spellings, URLs and version quirks.

Law (3): no JSON key, path of the REST API or version number is seen outside this package;
records speak our words and carry units. Reading order: ``wire`` (what answers look like),
``shapes`` (what they look like on a bad day), ``transport`` (how they are fetched), then one
module for each daemon.
"""
