"""The certificate of a secure port."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from podium.errors import ConfigError
from podium.serving.access.serving_certificate import serving_certificate


@pytest.mark.slow
def test_without_files_a_self_signed_one_is_made_and_removed() -> None:
    with serving_certificate("", "") as made:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(made.certificate, made.key)
        assert made.key.stat().st_mode & 0o077 == 0
        with serving_certificate(str(made.certificate), str(made.key)) as given:
            assert (given.certificate, given.key) == (made.certificate, made.key)
    assert not made.key.exists()


def test_a_certificate_and_its_key_are_given_together(tmp_path: Path) -> None:
    file = tmp_path / "tls.crt"
    file.write_text("")
    with pytest.raises(ConfigError, match="--tls-private-key-file is missing"):
        serving_certificate(str(file), "").__enter__()
    with pytest.raises(ConfigError, match="--tls-cert-file is missing"):
        serving_certificate("", str(file)).__enter__()


def test_files_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    file = tmp_path / "tls.crt"
    with pytest.raises(ConfigError, match=r"--tls-cert-file .*tls\.crt: no such file"):
        serving_certificate(str(file), str(file)).__enter__()
    file.write_text("nothing")
    with pytest.raises(ConfigError, match="are no certificate and key in PEM"):
        serving_certificate(str(file), str(file)).__enter__()
