"""The emulated HDFS: WebHDFS over a folder, with HDFS's rules for names, owners and renames.

Law: it writes below its own folder alone and follows no link out of it; what it refuses, it refuses with
HDFS's exception. It depends on no jobs or containers. The contract "live: a role knows no other role" in
pyproject.toml and tests/contract check it.
"""
