"""Jobs with deadlines as columns: read, generated, or converted.

Law: a trace is three int64 columns and a deadline, in order of submission; a reader refuses what it cannot
read and fills in nothing. It depends on no allocator. Contract "admission in virtual time: engines stand on
traces" in pyproject.toml checks the imports.
"""
