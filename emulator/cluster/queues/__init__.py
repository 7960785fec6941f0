"""One queue of a tree, and what YARN's own preemption computes from it."""
