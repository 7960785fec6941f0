"""Results as text, drawing and page.

Law: pure functions of results: the same results, the same bytes; no result is computed or changed here,
and no script or font from elsewhere is referenced. The contract "experiments: papers stand on the report"
checks the imports.
"""
