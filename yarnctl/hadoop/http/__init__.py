"""Send one request to a daemon; return one answer or one error, within bounds of time and size.

Law: nothing here depends on a daemon's paths or the meaning of an answer's fields; no other folder opens a
connection to Hadoop, follows a redirect or authenticates. A caller gets bytes and status, or an error of
`problems`. The contract "hadoop: clients stand on HTTP" in pyproject.toml checks the direction of imports.
"""
