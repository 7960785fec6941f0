"""The only folder that changes something on a cluster for an order: request, signal, kill, withdrawal.

Law: each change passes the permission check once more right before it is made, and a release needs a
manifest that names the attempt and the order, found in HDFS and verified. What is not certain is not done.
The contract "only the attached port carries out orders" checks who imports it; tests/unit/attach and
tests/soak/test_refusals.py check each condition.
"""
