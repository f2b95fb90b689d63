"""The audit of training code: sources in, each program followed and judged, findings and notes out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from traindx_tools.code_audit.entry import AuditResult, audit, audit_sources

__all__ = ["AuditResult", "audit", "audit_sources"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from traindx_tools.code_audit import entry

    return getattr(entry, name)
