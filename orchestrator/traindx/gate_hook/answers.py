"""What an event of the host is answered with, and where it happened."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from traindx.gate_hook.store import Store

Event = Mapping[str, Any]


class Answer(NamedTuple):
    """What the host is told: a refusal of a tool call, or words for the agent and for the person."""

    deny: str = ""
    context: str = ""
    """Added to what the agent reads."""
    notice: str = ""
    """Shown to the person."""
    again: str = ""
    """The agent's turn is not over yet, and why."""
    ask: str = ""
    """The person is asked whether the call may happen, and why."""
    arguments: Mapping[str, Any] | None = None
    """The call happens with these arguments in place of its own."""


class Place(NamedTuple):
    """Where an event happened."""

    store: Store
    plugin: str
    workspace: str
    """The project of the conversation."""

    @property
    def open_here(self) -> str | None:
        """The workspace with an open session that the project is, or lies in."""
        return next((w for w in self.store.workspaces() if is_within(self.workspace, w)), None)


SILENT = Answer()


def is_within(path: str, folder: str) -> bool:
    """True where the path is the folder or lies in it."""
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)
