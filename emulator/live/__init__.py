"""The emulator live: the same actors by the wall clock, speaking HTTP, with real processes if asked."""
