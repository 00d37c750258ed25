"""The kubeconfig of a lab, which also keeps its token.

The token is taken from the kubeconfig that is there, so that shells and browsers that know a lab
still know it after a restart.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from podium.errors import InputError
from podium.kube.http_rules import TOKEN_PATH
from podium.objects.reading import yaml_text
from podium.render.documents import to_yaml

#: The port of a lab that was given none.
PORT: Final = 8480
NAME: Final = "podium-lab"


def default_path(port: int) -> Path:
    """The kubeconfig of a lab that was given none: one for each port, in $XDG_STATE_HOME."""
    base = os.environ.get("XDG_STATE_HOME") or str(Path("~/.local/state").expanduser())
    name = "kubeconfig" if port == PORT else f"kubeconfig-{port}"
    return Path(base, "podium", "lab", name)


def read_token(path: Path) -> str:
    """The token in the kubeconfig of an earlier lab, or a new one.

    A file that no lab has written is refused, so that it is not overwritten later.
    """
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        return secrets.token_urlsafe(24)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read: {error}", where=str(path)) from None
    found = _lab_in(text)
    if found is None and text.strip():
        hint = "name another file with --kubeconfig"
        raise InputError(
            "is there and not of a lab, so it is left alone", where=str(path), hint=hint
        )
    return found.token if found is not None and found.token else secrets.token_urlsafe(24)


class _Lab(NamedTuple):
    """The lab that a kubeconfig is of."""

    server: str
    token: str


def _lab_in(text: str) -> _Lab | None:
    """The lab of a kubeconfig's text; None if no lab has written it."""
    try:
        [document] = yaml_text.documents(text)
        config = msgspec.convert(document.value, dict[str, Any])
        [user], [cluster] = config["users"], config["clusters"]
        if user["name"] != NAME or cluster["name"] != NAME:
            return None
        return _Lab(str(cluster["cluster"]["server"]), str(user["user"]["token"]))
    except (InputError, msgspec.ValidationError, ValueError, KeyError, TypeError):
        return None


def named_lab(kubeconfig: str | None) -> str:
    """The address, token included, of the lab of a kubeconfig; "" if it is of none.

    Without a file it is the first one that $KUBECONFIG names.
    """
    names = [kubeconfig] if kubeconfig else os.environ.get("KUBECONFIG", "").split(os.pathsep)
    for name in filter(None, names):
        try:
            text = Path(name).read_text("utf-8")
        except (OSError, UnicodeDecodeError):
            continue
        found = _lab_in(text)
        return found.server if found is not None else ""
    return ""


def write_kubeconfig(path: Path, url: str, token: str) -> None:
    """Write the kubeconfig, readable for its owner only.

    kubectl sends no token over plain HTTP, so the address has it as well.
    """
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": NAME, "cluster": {"server": f"{url}{TOKEN_PATH}{token}"}}],
        "users": [{"name": NAME, "user": {"token": token}}],
        "contexts": [{"name": NAME, "context": {"cluster": NAME, "user": NAME}}],
        "current-context": NAME,
    }
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.touch(mode=0o600)
        part.write_text(to_yaml(config), "utf-8")
        part.replace(path)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise InputError(f"cannot be written: {reason}", where=str(path)) from None
