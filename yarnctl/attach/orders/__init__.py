"""Send orders: the only folder that changes a cluster, by the orders of its frameworks.

Each change passes the permission check once more right before it is made. In doubt nothing is sent.
"""
