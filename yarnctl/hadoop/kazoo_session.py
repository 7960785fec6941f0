"""A session with ZooKeeper by kazoo, which the extra ``ha`` installs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from yarnctl.errors import BadInput, Unreachable
from yarnctl.extras import missing
from yarnctl.hadoop.zookeeper_lock import NodeStatus, ZooKeeperAddress

RECONNECT = {"max_tries": -1, "delay": 0.1, "max_delay": 1.0}  # For ever, each second
_LOG = logging.getLogger("yarnctl.zookeeper")


class KazooSession:
    """A session that is begun in the background, and again after a loss; see ``ZooKeeperSession``.

    A call waits at most a quarter of the session's time-out. One that was given up may still take effect.
    """

    def __init__(self, address: ZooKeeperAddress) -> None:
        try:
            from kazoo.client import KazooClient
            from kazoo.exceptions import KazooException, NoAuthError, NoNodeError
            from kazoo.handlers.threading import KazooTimeoutError
            from kazoo.security import make_digest_acl
        except ImportError:
            raise missing("kazoo", "ha") from None
        self._absent, self._denied = NoNodeError, NoAuthError
        self._faults = (KazooException, KazooTimeoutError)
        self._hosts = ",".join(address.hosts)
        self._wait_s = address.session_ms / 4000
        user, _, password = address.login.partition(":")
        self._access = [make_digest_acl(user, password, all=True)] if user else None
        _LOG.setLevel(logging.INFO)  # kazoo logs each request for debugging, also the one with the password
        self._client = KazooClient(
            self._hosts,
            timeout=address.session_ms / 1000,
            connection_retry=dict(RECONNECT),
            auth_data=[("digest", address.login)] if user else None,
            default_acl=self._access,
            logger=_LOG,
            use_ssl=address.tls.authorities is not None,
            ca=address.tls.authorities,
            certfile=address.tls.certificate,
            keyfile=address.tls.key,
            keyfile_password="",  # never ask a terminal
            check_hostname=True,
        )
        self._client.start_async()

    @property
    def session(self) -> int:
        """The id of the session; 0 while there is none."""
        known = self._client.client_id
        return 0 if known is None else known[0] or 0

    def names(self, folder: str) -> Sequence[str]:
        """Return the names in a folder, which is made if it is missing."""
        found = self._answer(self._client.get_children_async(folder))
        if found is None:
            self._answer(self._client.ensure_path_async(folder))
        return found or ()

    def require_own(self, folder: str) -> None:
        """Raise BadInput if the session has a login, and another one may use the folder, too."""
        found = None if self._access is None else self._answer(self._client.get_acls_async(folder))
        if found is not None and found[0] != self._access:
            others = ", ".join(f"{one.id.scheme}:{one.id.id.partition(':')[0]}"[:80] for one in found[0][:5])
            problem = f"the folder {folder} is open to {others}, not to the login of --lock-login-file alone"
            raise BadInput(f"ZooKeeper {self._hosts}", problem, "remove the folder when no daemon runs")

    def create(self, path: str, data: bytes) -> None:
        """Create an ephemeral node of this session; ZooKeeper appends a sequence number of ten digits."""
        self._answer(self._client.create_async(path, data, ephemeral=True, sequence=True))

    def status(self, path: str, on_gone: Callable[[], None] | None = None) -> NodeStatus | None:
        """Return a node's status, None if it is gone; ``on_gone`` is called once after it is gone."""
        watch = None if on_gone is None else lambda _: on_gone()
        found = self._answer(self._client.exists_async(path, watch))
        return None if found is None else NodeStatus(found.czxid, found.ephemeralOwner)

    def read(self, path: str) -> bytes | None:
        """Return a node's data, None if it is gone."""
        found = self._answer(self._client.get_async(path))
        return None if found is None else found[0]

    def delete(self, path: str) -> None:
        """Delete a node, if it exists."""
        self._answer(self._client.delete_async(path))

    def close(self) -> None:
        """End the session: its nodes are gone."""
        self._client.stop()
        self._client.close()

    def _answer(self, asked: Any) -> Any:
        """Return the answer to a request, None if there is no such node; raises Unreachable, BadInput."""
        try:
            return asked.get(timeout=self._wait_s)
        except self._absent:
            return None
        except self._denied:
            problem = "the login of this process may not use the lock's folder"
            remedy = "give all daemons the same --lock-login-file"
            raise BadInput(f"ZooKeeper {self._hosts}", problem, remedy) from None
        except self._faults as error:
            story = f"no answer ({type(error).__name__})"
            raise Unreachable(f"ZooKeeper {self._hosts}: {story}; check that its servers run") from None
