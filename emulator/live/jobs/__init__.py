"""How jobs come to a live cluster: a streaming job's command line, a submission, a workload's replay.

Law: a client: it calls a ResourceManager by REST alone and reads no state of one. What cannot be
emulated is refused before it is submitted, with the setting in the way. The contract "live: a role knows
no other role" in pyproject.toml checks the imports.
"""
