"""Jobs read from trace files: SWIM, Rumen and our Parquet.

Law: a reader turns a file into jobs ordered by submission, or raises BadInput that names the file and the
place. Nothing here knows the emulator; Parquet needs the extra ``export``.
"""
