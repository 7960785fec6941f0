"""What the daemon reports by itself: lines of the log, audit lines, events to a webhook."""
