"""The protocol of task runner and yarnctl: keys, stores, tokens, manifests, settings; no processes."""
