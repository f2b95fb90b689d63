"""Who investigates: `offline`, `claude`, or `auto`, which takes Claude when it can be reached and says which it took.

Nothing looks for keys here. Whether Claude can be reached is asked of Claude: one small question, through the CLI, with
whatever the person has set up for it.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from traindx.investigators.base import Investigator
from traindx.investigators.offline import OfflineInvestigator
from traindx.session_folder import SessionFolder
from traindx.settings import Settings, read_settings
from traindx.turn import Fixer
from traindx_tools.errors import MissingExtra

PROBE_SECONDS = 30.0
PROBE_DOLLARS = 0.05


@dataclass(frozen=True)
class Chosen:
    """The investigator, the fixer that goes with it, and in one sentence which was taken and why."""

    investigator: Investigator
    fixer: Fixer | None
    said: str


def choose(workspace: Path, settings: Settings, say: Callable[[str], None] = lambda line: None) -> Chosen:
    """The investigator for these settings. Raises MissingExtra for `claude` without the SDK.

    Outside of an event loop; inside of one await `chosen`.
    """
    return asyncio.run(chosen(workspace, settings, say))


async def chosen(workspace: Path, settings: Settings, say: Callable[[str], None] = lambda line: None) -> Chosen:
    """The same inside an event loop."""
    if settings.backend == "offline":
        return _offline("the offline investigator: instruments and catalog, no model")
    from traindx.investigators.claude_code.sdk import installed

    if not installed():
        missing = MissingExtra("The Claude investigator", "claude-agent-sdk", "agent")
        if settings.backend == "claude":
            raise missing
        return _offline(f"the offline investigator, because Claude cannot be reached. {missing}")
    if settings.backend == "auto":
        wrong = await unreachable(settings)
        if wrong is not None:
            return _offline(f"the offline investigator, because Claude cannot be reached ({wrong})")
    return _claude(workspace, settings, say)


def going_on(folder: str | Path, say: Callable[[str], None] = lambda line: None) -> dict[str, Any]:
    """The investigator and the fixer that a session goes on with, as options of `resume_session`.

    One that was begun with Claude goes on with it, with the same models and budgets, unless TRAINDX_BACKEND says
    "offline". Raises BadUsage for settings that make no sense.
    """
    from traindx.investigators.claude_code.conversation import kept_settings
    from traindx.investigators.claude_code.sdk import installed

    kept = kept_settings(Path(folder))
    workspace = SessionFolder(Path(folder)).workspace
    environment = {k: v for k, v in os.environ.items() if k.startswith("TRAINDX_")}
    if kept is None or environment.get("TRAINDX_BACKEND") == "offline" or not installed():
        return {}
    # Only what is ever kept: a file of the workspace must not name the program that is run.
    named = {k: kept[k] for k in Settings().kept() if k in kept and f"TRAINDX_{k.upper()}" not in environment}
    settings = replace(read_settings(workspace, named, environment), backend="claude")
    taken = _claude(workspace, settings, say)
    return {"investigator": taken.investigator, "fixer": taken.fixer}


def _offline(said: str) -> Chosen:
    return Chosen(OfflineInvestigator(), None, f"Investigating with {said}")


def _claude(workspace: Path, settings: Settings, say: Callable[[str], None]) -> Chosen:
    from traindx.investigators.claude import ClaudeInvestigator
    from traindx.investigators.claude_code.fixing import ClaudeFixer

    model = settings.model or "the CLI's default model"
    said = (f"Investigating with Claude ({model}), at most ${settings.dollars_all:g} and "
            f"{settings.seconds_all:g} s for specialists. No command is run by them, so no sandbox is used")
    return Chosen(ClaudeInvestigator(settings, say), ClaudeFixer(workspace.absolute(), settings, say), said)


async def unreachable(settings: Settings) -> str | None:
    """Why Claude gives no answer to a small question, or None where it does. Costs a fraction of a cent."""
    from traindx.investigators.claude_code.asking import Asker
    from traindx.investigators.claude_code.conversation import Conversations, Question
    from traindx.investigators.claude_code.purse import Purse
    from traindx.policy import Scope

    folder = Path(tempfile.mkdtemp(prefix="traindx-probe-"))
    form = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"],
            "additionalProperties": False}
    question = Question("probe", "Role: probe", "Answer ok: true, at once.", form, (), settings.model)
    once = replace(settings, retries=0, turns_each=3, effort="")
    try:
        asker = Asker(folder, once, Scope(folder), Conversations.of(folder), Purse(PROBE_DOLLARS, folder / "spent"))
        reply = await asker.ask(question, PROBE_SECONDS)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return None if reply.failure is None else f"{reply.failure.state}: {reply.failure.detail}"
