"""The checkpoint store's content: listed, shown, verified, collected. The task runner alone writes it."""
