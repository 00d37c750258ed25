"""TLS settings of connections to extenders."""

from __future__ import annotations

import ssl
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from podium.errors import ConfigError

if TYPE_CHECKING:
    from podium.engine.framework.extenders import Extender

_FILES = {"ca_file": "caFile", "cert_file": "certFile", "key_file": "keyFile"}


def context_of(extender: Extender) -> ssl.SSLContext:
    """The TLS context for an extender's `tlsConfig`.

    With `enableHttps` and no certificate authority every server certificate is accepted.
    """
    tls = extender.tls
    for name, field in _FILES.items():
        _check_readable(extender, field, tls.get(name))
    authority = tls.get("ca_file") or tls.get("ca_data")
    context = ssl.create_default_context(ssl.Purpose.SERVER_AUTH)
    try:
        if tls.get("ca_data"):
            context = ssl.create_default_context(cadata=_bytes(tls["ca_data"]).decode())
        elif tls.get("ca_file"):
            context = ssl.create_default_context(cafile=str(tls["ca_file"]))
        if tls.get("insecure") or (extender.enable_https and not authority):
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        _load_client_certificate(context, tls)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise ConfigError(f"tlsConfig of extender {extender.url_prefix}: {reason}") from error
    return context


def _check_readable(extender: Extender, field: str, path: object) -> None:
    """Raise an error that names the file; those of the ssl module do not."""
    if not path:
        return
    try:
        Path(str(path)).open("rb").close()
    except OSError as error:
        what = f"{field} {path}: {error.strerror or error}"
        raise ConfigError(f"tlsConfig of extender {extender.url_prefix}: {what}") from error


def _load_client_certificate(context: ssl.SSLContext, tls: dict[str, object]) -> None:
    """Load the client certificate, if one is configured; `ssl` reads certificates from files."""
    if tls.get("cert_data") or tls.get("key_data"):
        with tempfile.TemporaryDirectory(prefix="podium-") as folder:
            names = []
            for part in ("cert", "key"):
                path = Path(folder, f"{part}.pem")
                given = tls.get(f"{part}_data")
                if given:
                    path.touch(mode=0o600)
                    path.write_bytes(_bytes(given))
                names.append(str(path if given else tls.get(f"{part}_file", "")))
            context.load_cert_chain(*names)
    elif tls.get("cert_file"):
        context.load_cert_chain(str(tls["cert_file"]), str(tls.get("key_file") or "") or None)


def _bytes(value: object) -> bytes:
    assert isinstance(value, bytes)
    return value
