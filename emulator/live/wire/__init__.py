"""What the live programs share: messages, HTTP both ways, the umbilical, and kernel time driven by the wall
clock.

Law: it knows no role: it imports no other folder of live. Messages are frozen structs; what comes in is
bounded and checked before it is believed; nothing is served without `guard`. `real_time_driver` is the
only clock. The contract "live: a role knows no other role" in pyproject.toml checks the imports.
"""
