"""Instruments that measure a training run: logs, code, data, weights, live processes, many ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traindx_tools.errors import TraindxError
from traindx_tools.finding import Bearing, Finding, Location, Patch, Severity, Strength

if TYPE_CHECKING:
    from traindx_tools.on_logs.table import extract_training_metrics as extract_training_metrics

__version__ = "0.1.0"
__all__ = ["Bearing", "Finding", "Location", "Patch", "Severity", "Strength", "TraindxError", "__version__",
           "extract_training_metrics"]


def __getattr__(name: str) -> object:
    if name != "extract_training_metrics":
        raise AttributeError(f"module 'traindx_tools' has no attribute {name!r}")
    from traindx_tools.on_logs.table import extract_training_metrics  # loaded when it is used: readers are many

    return extract_training_metrics
