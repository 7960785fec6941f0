"""Experiments: scenarios run under several schemes, kept in a folder, summed up and drawn."""
