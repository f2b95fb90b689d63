"""The Claude Agent SDK, imported where it is used: it is an extra, 400 MB, and its types come and go with its version.

Everything of it is `Any` here, so that the type check says the same with and without it.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

from traindx_tools.errors import MissingExtra


def installed() -> bool:
    """True where the SDK can be imported."""
    return importlib.util.find_spec("claude_agent_sdk") is not None


def sdk() -> Any:
    """The package. Raises MissingExtra."""
    try:
        return importlib.import_module("claude_agent_sdk")
    except ModuleNotFoundError as missing:
        if (missing.name or "").split(".")[0] != "claude_agent_sdk":
            raise
        raise MissingExtra("The Claude investigator", "claude-agent-sdk", "agent") from missing
