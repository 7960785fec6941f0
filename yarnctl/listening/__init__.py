"""The checks of every HTTP server of this project before a request is answered."""
