"""Single runs, each found again by its identity: made once, over all cores, kept whole or not at all.

Law: an identity names everything that decides the result (settings, workload, seed, the code's digest); a
result that was written is never changed. It depends on no paper and draws nothing. The contract "experiments:
papers stand on the report" in pyproject.toml checks the imports.
"""
