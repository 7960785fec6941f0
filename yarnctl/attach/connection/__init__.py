"""The connection of an attached port to its cluster: settings, addresses, parallel calls.

Law: it contains addresses and protocols, not the purpose of a call. It imports no other folder of attach, and
every other folder may import it. Nothing here changes the cluster. The contract "attach: what writes stands
above what reads" checks it.
"""
