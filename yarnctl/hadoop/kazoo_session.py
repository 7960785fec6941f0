"""A session with ZooKeeper by kazoo, which the extra ``ha`` installs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from yarnctl.errors import Unreachable
from yarnctl.extras import missing
from yarnctl.hadoop.zookeeper_lock import NodeStatus, ZooKeeperAddress

RECONNECT = {"max_tries": -1, "delay": 0.1, "max_delay": 1.0}  # For ever, each second


class KazooSession:
    """A session that is begun in the background, and again after a loss; see ``ZooKeeperSession``.

    A call waits at most a quarter of the session's time-out. One that was given up may still take effect.
    """

    def __init__(self, address: ZooKeeperAddress) -> None:
        try:
            from kazoo.client import KazooClient
            from kazoo.exceptions import KazooException, NoNodeError
            from kazoo.handlers.threading import KazooTimeoutError
        except ImportError:
            raise missing("kazoo", "ha") from None
        self._absent, self._faults = NoNodeError, (KazooException, KazooTimeoutError)
        self._hosts = ",".join(address.hosts)
        self._wait_s = address.session_ms / 4000
        self._client = KazooClient(
            self._hosts, timeout=address.session_ms / 1000, connection_retry=dict(RECONNECT)
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
        """Return the answer to a request, None if there is no such node; raises Unreachable."""
        try:
            return asked.get(timeout=self._wait_s)
        except self._absent:
            return None
        except self._faults as error:
            story = f"no answer ({type(error).__name__})"
            raise Unreachable(f"ZooKeeper {self._hosts}: {story}; check that its servers run") from None
