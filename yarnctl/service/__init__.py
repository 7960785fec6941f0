"""The service: a REST API and a page over the view that the daemon publishes after each tick."""
