"""Send orders: the only folder that changes a cluster for an order (request, signal, kill, withdrawal).

Each change passes the permission check once more right before it is made, and a release needs a manifest in
HDFS that names the attempt and the order and is verified. In doubt nothing is sent.
"""
