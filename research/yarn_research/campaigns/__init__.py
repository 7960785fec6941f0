"""Campaigns on a real or a live cluster, and how their records are judged."""
