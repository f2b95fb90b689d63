"""Which files belong to a run: the entry point, how it is known, what it imports, and what only lies beside it."""

from traindx_tools.scope.find import Found, find_scope
from traindx_tools.scope.model import NOTHING_ASKED, UNKNOWN, Asked, LogLines, Scope

__all__ = ["NOTHING_ASKED", "UNKNOWN", "Asked", "Found", "LogLines", "Scope", "find_scope"]
