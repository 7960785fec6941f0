"""The live ResourceManager: the actor of virtual time, called by real nodes and masters."""
