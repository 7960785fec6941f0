"""What the API answers: one struct for each thing, which the service encodes and the command line decodes.

This folder holds structs and nothing that computes. Names have units; an instant is ``..._at_ms`` on the
loop's clock, null if it has not happened or is not known. A struct has the name of its schema in the OpenAPI
document; a record of the core that needs no other shape (:mod:`yarnctl.journal.explaining.story`) is in an
answer unchanged. The service sends every field.

It is a folder, not one file, because the command line imports only what it needs: answers about decisions
import the records of the core. The import contracts keep this folder below daemon, service and cli.
"""
