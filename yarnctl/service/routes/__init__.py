"""The endpoints: each reads the published view, hands over a request to admission, or pauses the loop."""
