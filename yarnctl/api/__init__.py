"""What the API answers: one struct for each thing, which the service encodes and the command line decodes.

Law: this folder holds structs and nothing that computes. Words have units, as everywhere; an instant is
``..._at_ms`` on the clock of the loop, null says that it has not happened or is not known. A struct
has the name that its schema has in the OpenAPI document; a record of the core that needs no other shape
(:mod:`yarnctl.journal.explaining.story`) is in an answer unchanged. The service sends every field.

A folder and not one file, because the command line loads what it asks for and nothing more: decisions bring
the records of the core with them. The import contracts keep this folder below daemon, service and cli.
"""
