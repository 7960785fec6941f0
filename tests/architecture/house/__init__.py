"""The measure of the house: circles, rooms, sizes, functions, names, arguments, HTTP clients, parsed reasons.

Law: a check reads sources and changes none. It has figures, each with its target, and breaches, each with
file and line. ``known.toml`` lists today's breaches. A breach that is not listed fails, an entry that is no
longer a breach fails, too: the list only shrinks (see ``ratchet``).
"""
