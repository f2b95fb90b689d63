"""The phases of a session, by name. Standard library only: the plugin's hook reads them in a bare Python."""

from __future__ import annotations

from typing import Literal, get_args

Phase = Literal["characterize", "hypothesize", "gather", "diagnose", "gate", "fix", "verify", "strike", "retrospective",
                "done", "halted", "needs_data", "healthy"]

PHASES: tuple[Phase, ...] = get_args(Phase)
READ_ONLY: frozenset[Phase] = frozenset({"characterize", "hypothesize", "gather", "diagnose", "gate"})
ENDS: frozenset[Phase] = frozenset({"done", "healthy"})
