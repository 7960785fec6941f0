"""Journals of formats 4 and 5: their records as they were written, and their translation to today's.

Law: nothing is decided again here, and nothing here is written. One release after format 6 all of it goes.
"""
