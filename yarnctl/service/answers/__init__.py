"""How the API answers: pure functions from the published view to the structs of `yarnctl.api`, and their
description.

No request, no route, no thread: values in, values out. The OpenAPI document is made of those structs, and
tests/service checks every answer against it.
"""
