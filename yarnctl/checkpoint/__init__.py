"""List, show, verify and collect the checkpoint store's content, which only the task runner writes."""
