"""Estimates from what has run: features, models, upper bounds.

Law: pure; fitted outside ``deciding``, which reads an ``Estimate`` only. scikit-learn is the extra
``prediction`` and imported when a model that needs it is fitted; ``ols`` and ``bin`` do without.
"""
