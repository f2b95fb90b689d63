"""Where sessions and diagnostics live in a workspace. Standard library only, like all that the plugin's hook reads."""

from __future__ import annotations

from pathlib import Path

SCRATCH = Path("scratch") / "debug"
"""Where sessions live, relative to the workspace: the only place that a diagnostic may write to."""

LEDGER = SCRATCH / "strikes.jsonl"
"""The strikes of a workspace."""
