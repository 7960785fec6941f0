"""The connection: the clients, the settings and the clock that every part of an attached port shares.

Law: no part calls another back. What the last observation reported (applications, queues, configuration) is
kept here, written by the part that observes it and read by the others; nothing is sent by the constructor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from yarnctl.attach.connection.application_rows import ApplicationRows
from yarnctl.attach.connection.calls import Calls
from yarnctl.attach.connection.settings import Attachment
from yarnctl.errors import YarnctlError
from yarnctl.hadoop.app_master import AppMaster
from yarnctl.hadoop.resource_manager import ResourceManager
from yarnctl.hadoop.webhdfs import WebHdfs
from yarnctl.hadoop.wire import yarn
from yarnctl.hadoop.wire.views import Leaf


class Connection:
    """One cluster, as the parts of a port reach it. ``clock`` returns ms since the epoch.

    ``make_master`` makes the client of an application's master. ``hdfs`` None: nothing can be suspended.
    ``settling``: the ResourceManager is new to us, and its number of nodes has not stood still yet.
    ``configuration`` is the ResourceManager's own (None: not read yet).
    """

    def __init__(
        self,
        manager: ResourceManager,
        make_master: Callable[[str], AppMaster],
        hdfs: WebHdfs | None,
        settings: Attachment,
        clock: Callable[[], int],
    ) -> None:
        self.manager = manager
        self.hdfs = hdfs
        self.settings = settings
        self.clock = clock
        self.calls = Calls(settings.calls_at_once)
        self.applications = ApplicationRows()
        self.leaves: tuple[Leaf, ...] = ()
        self.configuration: Mapping[str, str] | None = None
        self.settling = True
        self.last_problem = ""
        self._configuration_at_ms = 0
        self._make_master = make_master
        self._masters: dict[str, AppMaster] = {}

    @property
    def rows(self) -> dict[str, yarn.Application]:
        """The unfinished applications of the last observation, by id."""
        return self.applications.by_name

    def row(self, application: str) -> yarn.Application:
        """Return an application as it was last seen; asks for it if it was not. Raises as the client does."""
        return self.rows.get(application) or self.manager.application(application)

    def master(self, application: str) -> AppMaster:
        """Return the client of an application's master."""
        found = self._masters.get(application)
        if found is None:
            found = self._masters[application] = self._make_master(application)
        return found

    def node_names(self) -> frozenset[str]:
        """Return the nodes that are alive. Raises as the client does."""
        return frozenset(node.node for node in self.manager.nodes())

    def read_configuration(self) -> None:
        """Read the configuration of the ResourceManager when the last answer is too old."""
        now_ms = self.clock()
        is_fresh = now_ms - self._configuration_at_ms < self.settings.configuration_age_ms
        if self.configuration is not None and is_fresh:
            return
        try:
            self.configuration = self.manager.configuration()
            self._configuration_at_ms = now_ms
        except YarnctlError as problem:
            self.last_problem = str(problem)

    def forget(self, applications: Iterable[str]) -> None:
        """Drop the clients of applications that have ended."""
        for name in applications:
            self._masters.pop(name, None)

    def close(self) -> None:
        """End the threads that ask."""
        self.calls.close()
