"""What if: a copy of a controller decides on a snapshot that has been changed. Pure."""
