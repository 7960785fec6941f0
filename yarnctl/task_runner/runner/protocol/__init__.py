"""The protocol: what the task runner and yarnctl must agree on: keys, stores, tokens, manifests, settings.

Law: no process, signal or standard stream is touched here, and nothing of the folder above is imported. A
checkpoint is read and written through these modules only.
"""
