"""A journal's answers to a person: why this task, why not the next, who received the room, what it cost.

Law: it reads records and decides nothing; nothing that decides, folds or replays may import it. English is
made in `rendering` only, once reasons are values: then no other module turns one into a sentence, and a
lint refuses to compare or cut rendered text. The contract "journal: nothing that folds or replays
explains" checks the imports.
"""
