"""traindx: finds the root cause of a failed training run and changes nothing before a person has agreed.

What a script needs is imported from here; each name is loaded when it is first used, so that `import traindx` costs
nothing. `diagnose` only reads: it is called as it is, and also the module in which its `Report` lives.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from traindx.diagnose import diagnose as diagnose
    from traindx.model import Budget as Budget
    from traindx.model import Decision as Decision
    from traindx.model import Diagnosis as Diagnosis
    from traindx.model import Verify as Verify
    from traindx.session import decide as decide
    from traindx.session import resume_session as resume_session
    from traindx.session import resume_session_sync as resume_session_sync
    from traindx.session import run_debug_session as run_debug_session
    from traindx.session import run_debug_session_sync as run_debug_session_sync
    from traindx.session_result import SessionResult as SessionResult
    from traindx.undoing import undo_fix as undo_fix
    from traindx_tools import __version__ as __version__
    from traindx_tools import extract_training_metrics as extract_training_metrics

_HOME = {"Budget": "traindx.model", "Decision": "traindx.model", "Diagnosis": "traindx.model",
         "Verify": "traindx.model", "undo_fix": "traindx.undoing",
         "SessionResult": "traindx.session_result", "run_debug_session": "traindx.session",
         "run_debug_session_sync": "traindx.session", "resume_session": "traindx.session",
         "resume_session_sync": "traindx.session", "decide": "traindx.session", "__version__": "traindx_tools",
         "extract_training_metrics": "traindx_tools"}

__all__ = ["Budget", "Decision", "Diagnosis", "SessionResult", "Verify", "__version__", "decide", "diagnose",
           "extract_training_metrics", "resume_session", "resume_session_sync", "run_debug_session",
           "run_debug_session_sync", "undo_fix"]


def __getattr__(name: str) -> object:
    if name == "diagnose":
        return importlib.import_module("traindx.diagnose")
    if name not in _HOME:
        raise AttributeError(f"module 'traindx' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
