"""The endpoints: each reads the request, calls, and answers.

A route reads the published view, hands a request to the admission queue, or pauses the loop; it never
touches the controller, the journal or the cluster. The contract "the service touches neither loop nor
cluster" checks it.
"""
