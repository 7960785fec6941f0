"""The emulated HDFS: WebHDFS over a folder, with HDFS's rules for names, owners and renames."""
