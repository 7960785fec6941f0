"""The live ApplicationMaster: the actor of virtual time between ResourceManager, nodes and tasks.

What a task reports is checked against what was started. Kinds of tasks come in by their base `Tasks`.
"""
