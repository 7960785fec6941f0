"""The live ResourceManager: the actor of virtual time, called by real nodes and masters.

Law: the actor decides; here is only what virtual time leaves out (ids as YARN writes them, addresses,
mailboxes, liveness). It knows no HTTP and no other role. The contract "live: a role knows no other role"
in pyproject.toml checks the imports.
"""
