"""The same rules as for the product's tests: ``--thorough``, interrupts, garbage."""

from __future__ import annotations

from tests.conftest import (
    pytest_addoption,
    pytest_collection,
    pytest_collection_finish,
    pytest_configure,
    pytest_make_parametrize_id,
)

__all__ = [
    "pytest_addoption",
    "pytest_collection",
    "pytest_collection_finish",
    "pytest_configure",
    "pytest_make_parametrize_id",
]
