"""The emulator: ResourceManager, NodeManagers and ApplicationMasters in virtual time."""
