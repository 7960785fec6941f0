"""Clients of a live cluster: they call a ResourceManager by REST alone and read no state of one."""
