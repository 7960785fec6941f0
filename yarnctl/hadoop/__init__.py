"""Hadoop's room: the only place that knows its JSON spellings, URLs and version quirks.

Law (3): outside this package nobody sees a JSON key, a path of the REST API or a version number;
records speak our words and carry units. Reading order: ``wire`` (what answers look like),
``shapes`` (what they look like on a bad day), ``transport`` (how they are fetched), then one
module for each daemon.
"""
