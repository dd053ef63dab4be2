"""Writes the golden frames from their values: ``python tests/golden_frames.py``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Dict

GOLDEN = Path(__file__).resolve().parent / "golden"
sys.path.insert(0, str(GOLDEN.parent.parent))

from breakmycode_plugin import wire  # noqa: E402


def values() -> Dict[str, Any]:
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(GOLDEN.glob("*.json"))}


if __name__ == "__main__":
    for name, value in values().items():
        (GOLDEN / (name + ".bin")).write_bytes(wire.frame(wire.payload(value)))
