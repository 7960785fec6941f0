"""What lies in the checkpoint store: listed, shown, verified, collected. The task runner alone writes it."""
