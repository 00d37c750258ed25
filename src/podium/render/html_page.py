"""An HTML page that loads nothing else."""

from __future__ import annotations

from html import escape
from typing import Final

from podium.render.plain import printable

_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"


def text(plain: object) -> str:
    """Plain text as HTML."""
    return escape(printable(str(plain)))


def html_page(title: str, style: str, body: str, scripts: str = "") -> str:
    """A whole page; *body* and *scripts* are HTML."""
    policy = f"{_POLICY}; script-src 'unsafe-inline'" if scripts else _POLICY
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{text(title)}</title>
<style>
{style}</style>
</head>
<body>
<main>
{body}
</main>
{scripts}</body>
</html>
"""
