"""A headless Chromium, driven over HTTP by the W3C WebDriver protocol: all that the page's tests need."""

from __future__ import annotations

import base64
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests import http_client

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-dev-shm-usage", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--hide-scrollbars",
)  # fmt: skip
WAIT_S = 60
WAIT_SCRIPT = """
const done = arguments[arguments.length - 1], until = Date.now() + arguments[0];
const find = () => { try { return EXPRESSION; } catch (error) { return null; } };
const look = () => {
  const found = find();
  if (found || Date.now() > until) done(found || null); else setTimeout(look, 50);
};
look();
"""
"""The page's own policy forbids ``eval``, so the expression is written into the script."""


def require_chromium() -> tuple[str, str]:
    """Return where chromium and its driver are; skip the test if they are missing, but not in CI."""
    found = shutil.which("chromium") or shutil.which("chromium-browser"), shutil.which("chromedriver")
    if all(found):
        return found  # type: ignore[return-value]
    why = "needs chromium and chromedriver (Debian: apt-get install chromium chromium-driver)"
    if os.environ.get("CI"):
        pytest.fail(why)
    pytest.skip(why)


class Browser:
    """One session. ``script`` runs JavaScript and returns its value; ``until`` waits for a true one."""

    def __init__(self, url: str) -> None:
        self.url = url

    def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        answer = http_client.request(method, self.url + path, json=body, timeout=2 * WAIT_S)
        value = answer.json()["value"]
        assert answer.status_code == 200, value
        return value

    def open(self, url: str) -> None:
        self.call("POST", "/url", {"url": url})

    def size(self, width: int, height: int) -> None:
        self.call("POST", "/window/rect", {"width": width, "height": height})

    def script(self, text: str, *arguments: object) -> Any:
        return self.call("POST", "/execute/sync", {"script": text, "args": list(arguments)})

    def until(self, expression: str) -> Any:
        """Return the expression's value once it is true; fail when it has not become so for long."""
        self.call("POST", "/timeouts", {"script": 2 * WAIT_S * 1000})
        script = WAIT_SCRIPT.replace("EXPRESSION", expression)
        found = self.call("POST", "/execute/async", {"script": script, "args": [WAIT_S * 1000]})
        assert found, f"never became true: {expression}\n{self.text()}"
        return found

    def text(self) -> str:
        return str(self.script("return document.body.innerText"))

    def picture(self, to: Path) -> None:
        to.write_bytes(base64.b64decode(self.call("GET", "/screenshot")))

    def log(self, kind: str = "browser") -> list[dict[str, Any]]:
        """Return what was logged since the last call: the console's, or ``performance``."""
        return list(self.call("POST", "/se/log", {"type": kind}))


@contextmanager
def browsing(*more: str) -> Iterator[Browser]:
    """Start driver and browser with a profile of their own, and end both."""
    chromium, driver = require_chromium()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = [driver, f"--port={port}"]
        running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert running.stdout is not None
        try:
            _until_started(running.stdout.readline)
            options = {"binary": chromium, "args": [*FLAGS, *more, f"--user-data-dir={profile}"]}
            wanted = {
                "goog:chromeOptions": options,
                "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
            }
            body: Any = {"capabilities": {"alwaysMatch": wanted}}
            begun = http_client.post(f"http://127.0.0.1:{port}/session", json=body, timeout=2 * WAIT_S).json()
            assert "sessionId" in begun["value"], begun
            browser = Browser(f"http://127.0.0.1:{port}/session/{begun['value']['sessionId']}")
            try:
                yield browser
            finally:
                browser.call("DELETE", "")
        finally:
            running.terminate()
            running.communicate()


def _until_started(line: Callable[[], str]) -> None:
    said = []
    while text := line():
        said.append(text)
        if "started successfully" in text:
            return
    raise AssertionError("chromedriver did not start: " + "".join(said))
