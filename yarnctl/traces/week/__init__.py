"""A week: what jobs, tasks and containers of a cluster did, as tables in a folder."""
