"""The demo's last act: the live loop with real processes, from the first container to equal bytes."""
