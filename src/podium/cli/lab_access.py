"""How people and programs get into a lab: its token and its kubeconfig.

The token is kept with the kubeconfig, so that shells and browsers that know a lab still know it
after it was started again.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from podium.cli.lab import PORT
from podium.errors import InputError
from podium.kube.address import TOKEN_PATH
from podium.objects.reading import yaml_text
from podium.render.documents import to_yaml

NAME: Final = "podium-lab"


def default_place(port: int) -> Path:
    """Where the kubeconfig goes unless told otherwise: one for each port."""
    base = os.environ.get("XDG_STATE_HOME") or str(Path("~/.local/state").expanduser())
    name = "kubeconfig" if port == PORT else f"kubeconfig-{port}"
    return Path(base, "podium", "lab", name)


def token_in(path: Path) -> str:
    """The token of an earlier lab in this place, or a new one; other files are not touched."""
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        return secrets.token_urlsafe(24)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read: {error}", where=str(path)) from None
    found = _ours(text)
    if found is None and text.strip():
        hint = "name another file with --kubeconfig"
        raise InputError(
            "is there and not of a lab, so it is left alone", where=str(path), hint=hint
        )
    return found.token if found is not None and found.token else secrets.token_urlsafe(24)


class _Access(NamedTuple):
    """What a kubeconfig that a lab wrote tells."""

    server: str
    token: str


def _ours(text: str) -> _Access | None:
    """What it tells; None if it is anything else than a lab's."""
    try:
        [document] = yaml_text.documents(text)
        config = msgspec.convert(document.value, dict[str, Any])
        [user], [cluster] = config["users"], config["clusters"]
        if user["name"] != NAME or cluster["name"] != NAME:
            return None
        return _Access(str(cluster["cluster"]["server"]), str(user["user"]["token"]))
    except (InputError, msgspec.ValidationError, ValueError, KeyError, TypeError):
        return None


def lab_server() -> str:
    """Where the lab answers that $KUBECONFIG names, token included; nothing if it names none."""
    for name in filter(None, os.environ.get("KUBECONFIG", "").split(os.pathsep)):
        try:
            text = Path(name).read_text("utf-8")
        except (OSError, UnicodeDecodeError):
            continue
        found = _ours(text)
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
