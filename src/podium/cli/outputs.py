"""The folders that commands write."""

from __future__ import annotations

from pathlib import Path

from podium.errors import InputError


def new_folder(folder: str) -> Path:
    """The path of a folder that is not there yet, or is empty; otherwise an error."""
    target = Path(folder)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise InputError("is there already", where=folder, hint="name a folder that is not")
    return target
