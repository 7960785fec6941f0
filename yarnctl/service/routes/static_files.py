"""The page at ``/`` and the description at ``/docs``: files of this package, nothing from elsewhere.

Law: the files are read once, at start; what is served is what was installed.
"""

from __future__ import annotations

from importlib.resources import files

from fastapi import APIRouter, Response

TYPES = {"html": "text/html", "js": "text/javascript", "css": "text/css"}
FILES = {
    "/": "index.html",
    "/page.js": "page.js",
    "/page.css": "page.css",
    "/docs": "docs.html",
    "/docs.js": "docs.js",
}


def page_routes() -> APIRouter:
    """Make a route per file."""
    router = APIRouter(include_in_schema=False)
    folder = files("yarnctl.service").joinpath("page")
    for path, name in FILES.items():
        _add(router, path, folder.joinpath(name).read_bytes(), TYPES[name.rpartition(".")[2]])
    return router


def _add(router: APIRouter, path: str, content: bytes, media_type: str) -> None:
    @router.get(path, name=path)
    def file() -> Response:
        return Response(content, media_type=f"{media_type}; charset=utf-8")
