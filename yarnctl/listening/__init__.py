"""What every HTTP server of this project checks before a request is answered."""
