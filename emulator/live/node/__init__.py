"""The live NodeManager: heartbeats, and containers as real processes.

Law: the only folder that starts containers; each is in a session of its own, without a shell, and ended with
the program that started it, even if that is killed (`process_supervisor`). It imports no other role. The
contract "live: a role knows no other role" in pyproject.toml and tests/live/test_node_processes.py check it.
"""
