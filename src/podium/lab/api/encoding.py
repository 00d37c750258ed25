"""Objects as JSON bytes and back."""

from __future__ import annotations

from typing import Any

import msgspec

encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder(type=dict[str, Any]).decode
