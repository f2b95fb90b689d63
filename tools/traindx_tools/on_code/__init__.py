"""Static rules over training code: read as text, never imported or run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from traindx_tools.on_code.configured import constants, settings
    from traindx_tools.on_code.entry import AuditResult, audit, audit_sources
    from traindx_tools.on_code.project import Project

__all__ = ["AuditResult", "Project", "audit", "audit_sources", "constants", "settings"]
_HOMES = {
    "AuditResult": "entry",
    "audit": "entry",
    "audit_sources": "entry",
    "Project": "project",
    "constants": "configured",
    "settings": "configured",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
