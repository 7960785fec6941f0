"""What runs in containers: real streaming tasks in processes, or modelled ones on a timetable.

Both speak the same protocols, so that yarnctl cannot distinguish them. `streaming` runs on its own
(`python -m`) and imports nothing that needs the cluster.
"""
