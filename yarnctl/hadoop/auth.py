"""Who we are to Hadoop: a plain name, or a Kerberos ticket.

Law: no secret is kept here and none is ever put into a URL. With ``simple`` authentication the name
travels as ``user.name`` (facts, section 1.5: a stock cluster takes it as it is); with ``kerberos`` the
ticket cache of the process is used through SPNEGO, by an optional package that is imported only then.
Kerberos has not been tried on a real cluster (facts, section 12).
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Literal

import msgspec

from yarnctl.errors import BadInput

if TYPE_CHECKING:
    from requests.auth import AuthBase

Method = Literal["simple", "kerberos"]


class Identity(msgspec.Struct, frozen=True):
    """The caller. ``user`` "" with ``simple``: whatever the cluster's static user is."""

    user: str = ""
    method: Method = "simple"

    def query(self) -> dict[str, str]:
        """Return the query parameters that say who we are."""
        return {"user.name": self.user} if self.user and self.method == "simple" else {}


def session_auth(identity: Identity) -> AuthBase | None:
    """Return what signs each request (None: nothing does).

    Raises BadInput where Kerberos is asked for and its package is missing.
    """
    if identity.method == "simple":
        return None
    try:
        package = importlib.import_module("requests_gssapi")
    except (ImportError, OSError) as error:  # OSError: the Kerberos libraries themselves are missing
        raise BadInput(
            "authentication = kerberos",
            f"the package requests-gssapi cannot be used ({type(error).__name__})",
            "install it with: pip install 'yarnctl[kerberos]' (needs the Kerberos libraries), and run kinit",
        ) from None
    auth: AuthBase = package.HTTPSPNEGOAuth(mutual_authentication=package.OPTIONAL, opportunistic_auth=True)
    return auth
