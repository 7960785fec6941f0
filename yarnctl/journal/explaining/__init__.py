"""Explanations of a journal for people: why a task was chosen, which application got its container, the cost.

This folder reads records and decides nothing; nothing that decides, folds or replays imports it (the contract
"journal: nothing that folds or replays explains").
"""
