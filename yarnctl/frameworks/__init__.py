"""A folder per framework: its command lines, the answers of its programs, and its orders."""
