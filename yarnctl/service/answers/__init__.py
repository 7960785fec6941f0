"""How the API answers: pure functions from the published view to the structs of `yarnctl.api`."""
