"""The live ApplicationMaster: the actor of virtual time between ResourceManager, nodes and tasks.

Law: the actor decides; what a task reports is checked against what was started. It imports wire/ alone of
live: kinds of tasks come in by their base `Tasks`. The contract "live: a role knows no other role" in
pyproject.toml checks it.
"""
