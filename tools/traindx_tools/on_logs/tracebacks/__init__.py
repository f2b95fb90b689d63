"""Errors that a run printed: read from its log, and one rule an error pattern (L501 to L530)."""

from traindx_tools.on_logs.tracebacks.parse import read_errors

__all__ = ["read_errors"]
