"""The addresses of daemons behind Apache Knox, as the gateway's own service definitions route them.

::

    YARNUI           https://HOST:8443/gateway/TOPOLOGY/yarn             /ws, /proxy and /conf, unchanged
    RESOURCEMANAGER  https://HOST:8443/gateway/TOPOLOGY/resourcemanager  /v1/cluster for /ws/v1/cluster
    WEBHDFS          https://HOST:8443/gateway/TOPOLOGY                  /webhdfs/v1, data: /webhdfs/data/v1

RESOURCEMANAGER routes no /conf, and a page of an application only with a query that Knox encrypted into its
``trackingUrl``; it encrypts the ids of nodes and removes the names of hosts. WEBHDFS routes neither /jmx nor
/conf of the NameNode. Source: the services yarn-rm 2.5.0, yarnui 2.7.0 and webhdfs 2.4.0 of apache/knox.
"""

from __future__ import annotations

import re
from typing import Literal
from urllib.parse import urlsplit

from yarnctl.hadoop.http.answers import Missing, explain

KnoxService = Literal["", "YARNUI", "RESOURCEMANAGER"]
USE_YARN_UI = "set --rm to the address of Knox's YARNUI service: https://HOST:8443/gateway/TOPOLOGY/yarn"
READ_ONLY = (
    "Knox's RESOURCEMANAGER service routes neither /conf nor the pages of applications, and encrypts the ids"
    " of nodes: no task can be suspended or killed"
)
_API = "/resourcemanager"


def normal_base(address: str) -> str:
    """Return an address without the beginning of its daemon's paths: /webhdfs/v1, or /v1 of the API."""
    return re.sub(r"(?:/webhdfs(?:/v1)?|(?<=/resourcemanager)/v1)?/*$", "", address)


def service_at(base: str) -> KnoxService:
    """Return Knox's service at a ResourceManager's address, by its path; "": another server."""
    path = urlsplit(normal_base(base)).path
    return "RESOURCEMANAGER" if path.endswith(_API) else "YARNUI" if path.endswith("/yarn") else ""


def placed(base: str, path: str) -> str:
    """Return the URL of a daemon's path; raises Missing for what Knox's RESOURCEMANAGER does not route."""
    if not base.endswith(_API):
        return base + path
    if path.startswith("/ws/v1/cluster"):
        return base + path.removeprefix("/ws")
    shown = "/proxy" if path.startswith("/proxy/") else path
    story = f"Knox's RESOURCEMANAGER service does not route {shown}"
    found = Missing(explain(base, story, "", USE_YARN_UI), 404)
    found.fault = story
    raise found
