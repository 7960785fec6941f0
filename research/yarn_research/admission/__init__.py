"""Admission in virtual time: traces of jobs with deadlines, replayed under an allocator, and measured."""
