# Read by the shell that starts an executor (BASH_ENV): SIGTERM must reach the executor and not end this shell.
# `trap :` and not `trap ''`: what is ignored would be ignored by the executor as well.
unset BASH_ENV
trap : TERM
