"""How people and programs get into a lab: its token and its kubeconfig.

The token is kept with the kubeconfig, so that shells and browsers that know a lab still know it
after it was started again.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import Any, Final

import msgspec

from podium.cli.lab import PORT
from podium.errors import InputError
from podium.lab.security import TOKEN_PATH
from podium.objects import yaml_text
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
    token = _ours(text)
    if token is None and text.strip():
        hint = "name another file with --kubeconfig"
        raise InputError(
            "is there and not of a lab, so it is left alone", where=str(path), hint=hint
        )
    return token or secrets.token_urlsafe(24)


def _ours(text: str) -> str | None:
    """The token of a kubeconfig that a lab wrote; None if it is anything else."""
    try:
        [document] = yaml_text.documents(text)
        config = msgspec.convert(document.value, dict[str, Any])
        [user], [cluster] = config["users"], config["clusters"]
        if user["name"] != NAME or cluster["name"] != NAME:
            return None
        return str(user["user"]["token"])
    except (InputError, msgspec.ValidationError, ValueError, KeyError, TypeError):
        return None


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
