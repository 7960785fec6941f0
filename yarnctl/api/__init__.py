"""What the API answers: one struct for each thing, which the service encodes and the command line decodes.

Law: this folder holds structs and nothing that computes. Words have units, as everywhere; an instant is
``..._at_ms`` on the clock of the loop, null says that it has not happened or is not known. Fields are added;
one that is renamed is answered under its old name, too, for one release (service/answers/old_fields). A
struct has the name that its schema has in the OpenAPI document; a record of the core that needs no other
shape (:mod:`yarnctl.journal.explaining.story`) is in an answer unchanged. A field has a default only if a
daemon of an older version does not send it; the service sends all of them.

A folder and not one file, because the command line loads what it asks for and nothing more: decisions bring
the records of the core with them. The import contracts keep this folder below daemon, service and cli.
"""
