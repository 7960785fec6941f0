"""The served views of ``tests/unit/service``, for a browser and for schemathesis."""

from __future__ import annotations

from tests.unit.service.conftest import _serving, _serving_without_token, served, served_without_token

__all__ = ["_serving", "_serving_without_token", "served", "served_without_token"]
