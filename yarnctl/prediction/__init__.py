"""Estimates from what has run: features, models, upper bounds.

Pure; fitted outside ``deciding``, which reads an ``Estimate`` only.
"""
