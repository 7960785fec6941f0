"""A market for deadlines in virtual time: MRM's queueing models, its price model, and its replay.

Law: all follows from the seed; only ``wall_s`` is a measured time. ``market_replay`` calls what decides on a
cluster, too (:mod:`yarnctl.deciding.admission.pricing.prices`).
"""
