"""Authentication: tokens and their scopes, Host and Origin, bounds on a request.

Every request passes here before a route handles it. Secrets are kept as digests, compared in constant time,
and never logged. tests/unit/service/test_doors.py has a row for each role and endpoint.
"""
