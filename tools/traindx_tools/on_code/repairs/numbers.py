"""A number that is out of any usual range, changed where it is written down (C115, C123, C128, C130)."""

from __future__ import annotations

import ast

from traindx_tools.finding import Patch
from traindx_tools.on_code.repairs.written import (
    in_configuration,
    rewritten,
    source_behind,
)
from traindx_tools.on_code.source import SourceFile
from traindx_tools.on_code.syntax import last_name, syntax

USUAL_COMMITMENT = "0.25"
"""van den Oord et al. 2017."""


def usual_commitment(file: SourceFile, factor: ast.expr, weight: float) -> tuple[Patch, ...]:
    """The usual weight of the commitment term, in the code or in the configuration."""
    summary = "the usual weight of the commitment term"
    return rewritten(file, factor, USUAL_COMMITMENT, summary) or _configured(
        file, factor, weight, USUAL_COMMITMENT, summary)  # fmt: skip


def _configured(file: SourceFile, given: ast.expr | None, old: float, new: str, summary: str) -> tuple[Patch, ...]:
    """Where the value comes out of a configuration file: `cfg["lr"]`, `cfg.optimizer.lr`."""
    origin = source_behind(syntax(file), given)
    key = origin.slice.value if isinstance(origin, ast.Subscript) and isinstance(origin.slice, ast.Constant) else None
    key = last_name(origin) if key is None else key
    return in_configuration(file, str(key), old, new, summary) if key else ()
