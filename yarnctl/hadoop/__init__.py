"""Clients of Hadoop's daemons, with all of Hadoop's JSON spellings, URLs and version differences.

Law (3): no JSON key, path of the REST API or version number is used outside this package; records have
yarnctl's names and units. Reading order: ``wire`` (the form of answers, and ``wire.decoders``: its variants),
``http`` (requests and answers), then one module for each daemon.
"""
