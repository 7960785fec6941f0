"""Promises that running jobs will miss, and new quotes of what these delay."""
