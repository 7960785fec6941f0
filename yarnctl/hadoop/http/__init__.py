"""Send one request to a daemon; return one answer or one error, within bounds of time and size.

No other folder opens a connection to Hadoop, follows a redirect or authenticates.
"""
