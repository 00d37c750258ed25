"""The certificate of a secure port: one that was given, or a new self-signed one."""

from __future__ import annotations

import socket
import ssl
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from podium.errors import ConfigError

_DAYS = "365"


@dataclass(frozen=True, slots=True)
class Certificate:
    """The files of a certificate and its private key, in PEM."""

    certificate: Path
    key: Path


@contextmanager
def serving_certificate(certificate: str, key: str) -> Iterator[Certificate]:
    """The files that were given; if none were, those of a new certificate, removed at the end."""
    if certificate or key:
        yield _given(certificate, key)
        return
    with tempfile.TemporaryDirectory(prefix="podium-") as folder:
        yield _self_signed(Path(folder))


def _given(certificate: str, key: str) -> Certificate:
    for flag, path in (("--tls-cert-file", certificate), ("--tls-private-key-file", key)):
        if not path:
            raise ConfigError(f"{flag} is missing: a certificate and its key are given together")
        try:
            Path(path).open("rb").close()
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise ConfigError(f"{flag} {path}: {reason}") from None
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key)
    except (ssl.SSLError, OSError) as error:
        reason = (getattr(error, "reason", None) or str(error)).lower().replace("_", " ")
        raise ConfigError(
            f"{certificate} and {key} are no certificate and key in PEM: {reason}"
        ) from None
    return Certificate(Path(certificate), Path(key))


def _self_signed(folder: Path) -> Certificate:
    """A certificate for this host and for loopback, made by the program openssl."""
    made = Certificate(folder / "tls.crt", folder / "tls.key")
    host = socket.gethostname()
    names = f"subjectAltName=DNS:{host},DNS:localhost,IP:127.0.0.1,IP:::1"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    command += ["-nodes", "-days", _DAYS, "-subj", f"/CN={host[:64]}", "-addext", names]
    command += ["-keyout", str(made.key), "-out", str(made.certificate)]
    try:
        subprocess.run(command, check=True, capture_output=True)  # noqa: S603  no input of others
    except (OSError, subprocess.CalledProcessError) as error:
        raise ConfigError(
            f"no self-signed certificate could be made with the program openssl ({error}); "
            "give --tls-cert-file and --tls-private-key-file"
        ) from None
    made.key.chmod(0o600)
    return made
