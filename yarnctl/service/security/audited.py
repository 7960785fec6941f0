"""An audit line for each request that changes something, also for a rejected one."""

from __future__ import annotations

from yarnctl.audit import audit, audit_line
from yarnctl.service.security import asgi
from yarnctl.service.security.middleware import QUESTIONS, sent_by
from yarnctl.service.security.tokens import Tokens

RENEWAL = "/renew"
"""Renewals of admissions come every few seconds, and change nothing that an operator asks for."""


class Audited:
    """ASGI middleware; ``tokens`` name the callers."""

    def __init__(self, app: asgi.App, tokens: Tokens) -> None:
        self.app = app
        self._tokens = tokens

    async def __call__(self, scope: asgi.Scope, receive: asgi.Receive, send: asgi.Send) -> None:
        """Pass a request on, and write its line when its answer begins."""
        changes = scope["type"] == "http" and scope["method"] not in ("GET", "HEAD", "OPTIONS")
        if not changes or scope["path"] in QUESTIONS or scope["path"].endswith(RENEWAL):
            await self.app(scope, receive, send)
            return

        async def send_audited(message: asgi.Message) -> None:
            if message["type"] == "http.response.start":
                caller = self._tokens.caller(sent_by(scope))
                user = "" if caller is None else caller.user or caller.name
                client = scope.get("client") or ("",)
                failure = "" if message["status"] < 400 else f"status {message['status']}"
                operation = f"{scope['method']} {scope['path']}"
                audit(audit_line(user, operation, "api", failure, address=str(client[0])))
            await send(message)

        await self.app(scope, receive, send_audited)
