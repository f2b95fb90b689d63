"""What data files hold: read in bounds, without executing anything of them, and judged against each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from traindx_tools.on_data.examination import DataReport, examine
    from traindx_tools.on_data.run_data import of_run

__all__ = ["DataReport", "examine", "of_run"]
_HOMES = {"DataReport": "examination", "examine": "examination", "of_run": "run_data"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
