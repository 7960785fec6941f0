"""The ResourceManager's REST as Hadoop answers it: two dialects over one live ResourceManager."""
