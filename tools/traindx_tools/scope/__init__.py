"""Which files belong to a run: the entry point, how it is known, what it imports, and what only lies beside it."""

from traindx_tools.scope.find import Found, find_scope
from traindx_tools.scope.model import Asked, LogLines, Scope

__all__ = ["Asked", "Found", "LogLines", "Scope", "find_scope"]
