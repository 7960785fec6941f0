"""Options of ``yarnctl run`` about page and API: where they are served, to whom, and with which TLS."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from yarnctl.cli.grouped_help import RareOption
from yarnctl.errors import BadInput

if TYPE_CHECKING:
    from yarnctl.daemon.loop import Loop
    from yarnctl.daemon.running import Serve
    from yarnctl.daemon.state_dir import StateDir
    from yarnctl.service.security.tls import Tls
    from yarnctl.service.security.tokens import Tokens
    from yarnctl.service.serving import Handle


class ListenOptions(NamedTuple):
    """Where API and page are served, and to whom."""

    listen: str = "127.0.0.1:8188"
    token_file: Path | None = None
    tokens_file: Path | None = None
    open_reads: bool = False
    allow_hosts: tuple[str, ...] = ()
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    tls_client_ca: Path | None = None
    trusted_proxies: tuple[str, ...] = ()
    path_prefix: str = ""


LISTEN_OPTIONS = (
    click.option(
        "--listen", default="127.0.0.1:8188", show_default=True, help="HOST:PORT of API and page, or off."
    ),
    click.option(
        "--token-file",
        type=click.Path(path_type=Path, dir_okay=False),
        help="File with the operator's token, which allows everything; required to read from other hosts."
        " Mode 600.",
    ),
    click.option(
        "--tokens",
        "tokens_file",
        type=click.Path(path_type=Path, dir_okay=False),
        help="TOML file of tokens, each with a name, a user, scopes (read, submit, operate) and a token file"
        " (docs/admission.md). Mode 600, as each token file.",
    ),
    click.option(
        "--open-reads",
        cls=RareOption,
        is_flag=True,
        help="Allow reads without a token from every host that reaches --listen.",
    ),
    click.option(
        "--allow-host",
        "allow_hosts",
        multiple=True,
        metavar="NAME",
        help="Accept requests for this host name, too (always accepted: names of loopback and, if --listen is"
        " not loopback, any IP address).",
    ),
    click.option(
        "--tls-certificate",
        type=click.Path(path_type=Path, dir_okay=False),
        help="PEM file with the server's certificate and its chain: serve HTTPS. SIGHUP reloads it.",
    ),
    click.option(
        "--tls-key",
        type=click.Path(path_type=Path, dir_okay=False),
        help="PEM file with the key of --tls-certificate, without a passphrase and closed to other users.",
    ),
    click.option(
        "--tls-client-ca",
        cls=RareOption,
        type=click.Path(path_type=Path, dir_okay=False),
        help="PEM file with authorities: accept only clients with a certificate of one of them. Entries of"
        " --tokens can name such a certificate.",
    ),
    click.option(
        "--trusted-proxy",
        "trusted_proxies",
        cls=RareOption,
        multiple=True,
        metavar="ADDRESS",
        help="IP address or network of a proxy in front. Only its headers X-Forwarded-For and"
        " X-Forwarded-Proto count. Reads then need a token on loopback, too.",
    ),
    click.option(
        "--path-prefix",
        cls=RareOption,
        default="",
        metavar="PATH",
        help="Path below which a proxy shows page and API, for example /yarnctl.",
    ),
)


def service(listening: ListenOptions, tokens: Tokens) -> Serve | None:
    """Return the function that starts API and page, None for ``off``; raises BadInput before it starts."""
    if listening.listen == "off":
        return None
    from yarnctl.daemon.running import clock_ms
    from yarnctl.listening.names import is_loopback, names_for
    from yarnctl.service.app import make_app
    from yarnctl.service.security.proxies import checked_prefix, checked_proxies
    from yarnctl.service.serving import parse_listen, require_safe, serve_in_thread

    host, port = parse_listen(listening.listen)
    tls = tls_of(listening, tokens)
    proxies = checked_proxies(listening.trusted_proxies)
    prefix = checked_prefix(listening.path_prefix)
    require_safe(host, tokens, listening.open_reads, has_tls=tls is not None or bool(proxies))
    names = names_for(host, listening.allow_hosts)

    def serve(loop: Loop, state: StateDir) -> Handle:
        app = make_app(
            lambda: loop.publisher.view,
            token=tokens,
            control=loop,
            journal=state.journal,
            names=names,
            clock=clock_ms,  # the loop's clock: with another one, a stuck loop could seem recent for ever
            open_reads=listening.open_reads or (is_loopback(host) and not proxies),
            request_queue=None if loop.admission is None else loop.admission.request_queue,
            what_if=loop.what_if,
            prefix=prefix,
        )
        handle = serve_in_thread(
            app, host, port, token=tokens, open_reads=listening.open_reads, tls=tls, proxies=proxies
        )
        logging.getLogger("yarnctl.daemon").info("page and API at %s", handle.url)
        return handle

    return serve


def tls_of(listening: ListenOptions, tokens: Tokens) -> Tls | None:
    """Return the server's TLS, None without a certificate; raises BadInput naming the option."""
    from yarnctl.service.security.tls import Tls, TlsFiles

    certificate, key, authorities = listening.tls_certificate, listening.tls_key, listening.tls_client_ca
    if tokens.certificates and authorities is None:
        name = next(iter(tokens.certificates.values())).name
        problem = f"the token {name} has a certificate, and no authority is set"
        raise BadInput("--tokens", problem, "set --tls-client-ca, or give the token a file")
    if certificate is not None and key is not None:
        return Tls(TlsFiles(certificate, key, authorities))
    for option, value, other in (
        ("--tls-certificate", certificate, "--tls-key"),
        ("--tls-key", key, "--tls-certificate"),
        ("--tls-client-ca", authorities, "--tls-certificate and --tls-key"),
    ):
        if value is not None:
            raise BadInput(option, f"requires {other}", f"set {other}")
    return None
