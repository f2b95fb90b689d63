"""The failure modes in one file of the wheel: 330 small ones compress badly and are slow to parse.

The repository keeps one TOML file each, and an editable installation reads those.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

MODES = Path("tools") / "traindx_tools" / "catalog" / "modes"
PACKED = "traindx_tools/catalog/modes.json"


class OneFile(BuildHookInterface):  # type: ignore[type-arg]
    """Puts them together while a wheel is built."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """`version`: "standard", or "editable" for a wheel that only points here."""
        if version != "standard":
            return
        folder = Path(self.root) / MODES
        tables = {path.relative_to(folder).as_posix(): tomllib.loads(path.read_text(encoding="utf-8"))
                  for path in sorted(folder.rglob("*.toml"))}
        made = Path(tempfile.mkdtemp()) / "modes.json"
        made.write_text(json.dumps(tables, ensure_ascii=False, separators=(",", ":")), encoding="utf-8")
        build_data["force_include"][str(made)] = PACKED
