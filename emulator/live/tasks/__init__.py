"""What runs in containers: real streaming tasks in processes, or modelled ones on a timetable.

Law: real and modelled tasks speak the same protocols, so that yarnctl cannot distinguish them. `streaming`
runs on its own (`python -m`) and imports nothing that needs the cluster. Of live it imports master/ and
wire/. The contract "live: a role knows no other role" in pyproject.toml checks it.
"""
