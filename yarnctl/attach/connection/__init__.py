"""The connection of an attached port to its cluster: settings, addresses, parallel calls, no changes."""
