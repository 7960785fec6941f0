"""Questions: what-if requests, answered in the loop's thread, where the controller rests between ticks."""
