"""Errors of the API: ``{"error": {"code", "message", "next"}}``. Codes are stable, sentences are not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.routing import compile_path

from yarnctl.api.market_answers import QuoteOut
from yarnctl.api.paged import ErrorBody, Problem
from yarnctl.service.answers.describing import described

SHOWN_MAX = 200

CODES = {
    400: ("bad-request", "see /docs for the parameters of this address"),
    404: ("not-found", "see /docs for the list of addresses"),
    405: ("method-not-allowed", "use a method of the Allow header; see /docs"),
}


class ApiProblem(HTTPException):
    """An answer of 4xx or 5xx with its code and what to do next; ``quote``: the current prices."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        remedy: str,
        headers: Mapping[str, str] | None = None,
        *,
        quote: QuoteOut | None = None,
    ) -> None:
        super().__init__(status, message, dict(headers) if headers else None)
        self.code = code
        self.remedy = remedy
        self.quote = quote


def body(code: str, message: str, remedy: str) -> dict[str, Any]:
    """Return the body of an error."""
    found: dict[str, Any] = msgspec.to_builtins(
        ErrorBody(error=Problem(code=code, message=message, next=remedy))
    )
    return found


def responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the OpenAPI entries of these errors.

    422 and 403 are always possible: a wrong parameter; a foreign Origin, or a token without the scope.
    """
    return {status: {"model": described(ErrorBody)} for status in (*statuses, 403, 422)}


def install(app: FastAPI) -> None:
    """Answer every error of the app with ``ErrorBody``."""
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(Exception, _unexpected)


async def _http(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    headers = dict(error.headers or {})
    if error.status_code == 405 and (methods := _methods(request)):
        headers["Allow"] = ", ".join(methods)
    if isinstance(error, ApiProblem):
        content = body(error.code, error.detail, error.remedy)
        if error.quote is not None:
            content["quote"] = msgspec.to_builtins(error.quote)
    else:
        code, remedy = CODES.get(error.status_code, ("http-error", "see /docs"))
        content = body(code, str(error.detail), remedy)
    return JSONResponse(content, error.status_code, headers=headers)


def _methods(request: Request) -> list[str]:
    """Return the methods of an address: starlette names those of one route only."""
    paths: dict[str, dict[str, Any]] = request.app.openapi()["paths"]
    matching = [methods for path, methods in paths.items() if compile_path(path)[0].match(request.url.path)]
    return sorted({method.upper() for methods in matching for method in methods})


async def _invalid(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    where = " ".join(str(part) for part in first["loc"])[:SHOWN_MAX]
    if first["type"] == "extra_forbidden":
        content = body("unknown-parameter", f"{where}: unknown parameter", "remove it; see /docs")
    else:
        content = body("invalid-parameter", f"{where}: {first['msg']}"[: 2 * SHOWN_MAX], "see /docs")
    return JSONResponse(content, 422)


async def _unexpected(_: Request, error: Exception) -> JSONResponse:
    message = f"internal error: {type(error).__name__}"
    return JSONResponse(body("internal", message, "report it with the daemon's log"), 500)
