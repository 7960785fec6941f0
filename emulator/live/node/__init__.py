"""The live NodeManager: heartbeats, and containers as real processes.

The only folder that starts containers; each is in a session of its own, without a shell, and ended with
the program that started it, even if that is killed (`process_supervisor`).
"""
