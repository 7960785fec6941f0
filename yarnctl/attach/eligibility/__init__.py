"""Eligibility of jobs, and the one permission check of actions; nothing here changes the cluster."""
