"""A little ZooKeeper in memory, and sessions with it: ephemeral nodes, transactions, watches, lost sessions.

Law: a session's id has a server's number in its high byte: a later one may be smaller. ``czxid`` only grows.
A session that is cut off is not told that it is lost: it learns of it when it is connected again.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Sequence

from yarnctl.errors import BadInput, Unreachable
from yarnctl.hadoop.zookeeper_lock import NodeStatus


class LittleEnsemble:
    """``nodes``: path -> data, transaction and owner; ``sequence``: the next number in each folder.

    ``is_open``: other logins than the sessions' may use the folder.
    """

    def __init__(self) -> None:
        self.nodes: dict[str, tuple[bytes, int, int]] = {}
        self.sequence: dict[str, int] = {}
        self.watches: dict[str, list[Callable[[], None]]] = {}
        self.czxid = 0x100000000
        self.opened = 0
        self.is_open = False

    def next_session(self) -> int:
        """Return the id of a new session, at a server of its own: each is smaller than the one before."""
        self.opened += 1
        return (9 - self.opened) << 56 | self.opened

    def put(self, path: str, data: bytes, owner: int) -> None:
        self.czxid += 1
        self.nodes[path] = (data, self.czxid, owner)

    def drop(self, path: str) -> None:
        self.nodes.pop(path, None)
        for told in self.watches.pop(path, []):
            told()

    def expire(self, session: int) -> None:
        """End a session: its nodes are gone."""
        for path in [path for path, (_, _, owner) in self.nodes.items() if owner == session]:
            self.drop(path)


class LittleSession:
    """A session of ``ensemble``. ``before`` and ``after`` run around each answer, to move a clock."""

    def __init__(self, ensemble: LittleEnsemble) -> None:
        self.ensemble = ensemble
        self.session = ensemble.next_session()
        self.is_cut = False
        self.before: Callable[[], None] = lambda: None
        self.after: Callable[[], None] = lambda: None
        self.asked: list[str] = []

    def lose(self) -> None:
        """The server ends the session; the client does not know yet."""
        self.ensemble.expire(self.session)

    def begin_again(self) -> None:
        """The client connects: it has a new session."""
        self.is_cut, self.session = False, self.ensemble.next_session()

    def names(self, folder: str) -> Sequence[str]:
        self._ask("names")
        if folder not in self.ensemble.nodes:
            self.ensemble.put(folder, b"", 0)
        return self._told([posixpath.basename(one) for one in self.ensemble.nodes if _above(one) == folder])

    def require_own(self, folder: str) -> None:
        self._ask("require_own")
        if self.ensemble.is_open:
            raise BadInput(folder, "is open")

    def create(self, path: str, data: bytes) -> None:
        self._ask("create")
        folder = _above(path)
        number = self.ensemble.sequence.get(folder, 0)
        self.ensemble.sequence[folder] = number + 1
        self.ensemble.put(f"{path}{number:010d}", data, self.session)
        self._told(None)

    def status(self, path: str, on_gone: Callable[[], None] | None = None) -> NodeStatus | None:
        self._ask("status")
        found = self.ensemble.nodes.get(path)
        if found is not None and on_gone is not None:
            self.ensemble.watches.setdefault(path, []).append(on_gone)
        return self._told(None if found is None else NodeStatus(found[1], found[2]))

    def read(self, path: str) -> bytes | None:
        self._ask("read")
        found = self.ensemble.nodes.get(path)
        return self._told(None if found is None else found[0])

    def delete(self, path: str) -> None:
        self._ask("delete")
        self.ensemble.drop(path)

    def close(self) -> None:
        self.lose()

    def _ask(self, what: str) -> None:
        self.asked.append(what)
        self.before()
        if self.is_cut:
            raise Unreachable("no answer")

    def _told(self, answer):
        self.after()
        return answer


def _above(path: str) -> str:
    return posixpath.dirname(path)
