"""A broken run beside one that works: metrics, settings, versions and code, and which difference could explain it."""

from __future__ import annotations

from traindx_tools.against.compare import Comparison, compare

__all__ = ["Comparison", "compare"]
