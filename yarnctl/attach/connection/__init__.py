"""How an attached port reaches its cluster: settings, addresses, many calls at once.

Law: it knows where and how to ask, never what for. It imports no other folder of attach, and every other
folder may import it. Nothing here changes the cluster. The contract "attach: what writes stands above what
reads" checks it.
"""
