"""The journal as Parquet: tables of an hour each, checked after writing, and segments that they replace.

Law: what is written for a line depends on that line and on the head of its file, so that two runs write the
same rows, and a segment can be compared with its export before it is deleted.
"""
