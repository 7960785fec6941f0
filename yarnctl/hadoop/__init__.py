"""The only package with Hadoop's JSON spellings, URLs and version quirks.

Law (3): no JSON key, path of the REST API or version number is used outside this package; records have our
names and units. Reading order: ``wire`` (the form of answers, and ``wire.decoders``: its variants), ``http``
(how answers are fetched), then one module for each daemon.
"""
