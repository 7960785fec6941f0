"""Authentication: tokens and their scopes, Host and Origin, bounds on a request.

Every request passes here before a route handles it. Secrets are kept as digests, compared in constant
time, and never logged. It imports no route. The role x endpoint table of tests/unit/service/test_doors.py
has a row for each endpoint and fails if one is missing.
"""
