"""What starts the live programs: all in one process, or manager, node and master each in its own.

Law: it connects the roles and decides nothing; nothing imports it but the command line. What it starts, it
ends. The contract "live: a role knows no other role" in pyproject.toml checks the imports.
"""
