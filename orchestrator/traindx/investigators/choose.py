"""Who investigates: `offline`, `claude` (the CLI), `api` (the Messages API alone), or `auto`, which takes the first of
Claude's ways that answers, else the offline one, and says which it took.

Nothing looks for keys here. Whether Claude can be reached is asked of Claude: one small question, with whatever the
person has set up for it.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from traindx.investigators.base import Investigator
from traindx.investigators.claude_code.failures import Failure
from traindx.investigators.claude_code.redaction import redacted
from traindx.investigators.offline import OfflineInvestigator
from traindx.notices import Hear, Notice, nobody
from traindx.session_folder import SessionFolder
from traindx.settings import BACKENDS, Settings, read_settings
from traindx.turn import Fixer
from traindx_tools.errors import BadUsage, MissingExtra

PROBE_SECONDS = 30.0
PROBE_DOLLARS = 0.05
PROBE_TOKENS = 20_000

AGAIN = "once it can be, begin anew or resume with resume_session(..., investigator='auto')"


@dataclass(frozen=True)
class Chosen:
    """The investigator, the fixer that goes with it, and in one sentence which was taken and why.

    `degraded`: who was asked for and could not be reached, for the session and its gate.
    """

    investigator: Investigator
    fixer: Fixer | None
    said: str
    degraded: tuple[str, ...] = ()


def choose(workspace: Path, settings: Settings, hear: Hear = nobody) -> Chosen:
    """The investigator for these settings. Raises MissingExtra for a backend whose package is not installed.

    Outside of an event loop; inside of one await `chosen`.
    """
    return asyncio.run(chosen(workspace, settings, hear))


async def chosen(workspace: Path, settings: Settings, hear: Hear = nobody) -> Chosen:
    """The same inside an event loop."""
    if settings.backend == "offline":
        return _offline("the offline investigator: instruments and catalog, no model")
    if settings.backend != "auto":
        _there(settings)
        return _claude(workspace, settings, hear)
    missing: dict[str, Failure] = {}
    for backend in ("claude", "api"):
        made = replace(settings, backend=backend)
        wrong = _lacking(made) or await unreachable(made)
        if wrong is None:
            return _claude(workspace, made, hear)
        missing[backend] = wrong
    return _instead(missing)


async def named(given: object, workspace: Path, hear: Hear = nobody) -> Chosen:
    """Who investigates, by the name of a backend, chosen before, or as it is. Raises BadUsage for anything else,
    MissingExtra."""
    if isinstance(given, Chosen):
        return given
    if given is None or isinstance(given, Investigator):
        return Chosen(given or OfflineInvestigator(), None, "")
    if not isinstance(given, str) or given not in BACKENDS:
        raise BadUsage(f"investigator is {str(given)[:80]!r}: expected {', '.join(BACKENDS)}, or an Investigator")
    environment = {k: v for k, v in os.environ.items() if k.startswith("TRAINDX_")}
    taken = await chosen(workspace, read_settings(workspace, {"backend": given}, environment), hear)
    hear(Notice("said", text=taken.said))
    return taken


def _there(settings: Settings) -> None:
    """Raises MissingExtra where the backend's package is not installed, BadUsage where the API has no model."""
    from traindx.investigators.claude_code import sdk
    from traindx.investigators.messages_api import client

    if settings.backend == "claude" and not sdk.installed():
        raise MissingExtra("The Claude investigator", "claude-agent-sdk", "agent")
    if settings.backend == "api" and not client.installed():
        raise MissingExtra("Asking over the Messages API", "anthropic", "api")
    if settings.backend == "api" and not client.model_of(settings.model, settings):
        raise BadUsage("the API has no default model: name one with --model, TRAINDX_MODEL or ANTHROPIC_MODEL")


def _lacking(settings: Settings) -> Failure | None:
    try:
        _there(settings)
    except MissingExtra as error:
        return Failure("not-installed", str(error))
    except BadUsage as error:
        return Failure("no-model", str(error))
    return None


def going_on(folder: str | Path, hear: Hear = nobody) -> dict[str, Any]:
    """The investigator and the fixer that a session goes on with, as options of `resume_session`.

    One that was begun with Claude goes on with it, with the same models and budgets, unless TRAINDX_BACKEND says
    "offline"; where its package is gone, with the engine, and degraded. Raises BadUsage for settings that make no
    sense.
    """
    from traindx.investigators.claude_code.conversation import kept_settings

    kept = kept_settings(Path(folder))
    workspace = SessionFolder(Path(folder)).workspace
    environment = {k: v for k, v in os.environ.items() if k.startswith("TRAINDX_")}
    if kept is None or environment.get("TRAINDX_BACKEND") == "offline":
        return {}
    # Only what is ever kept: a file of the workspace must not name the program that is run.
    named = {k: kept[k] for k in Settings().kept() if k in kept and f"TRAINDX_{k.upper()}" not in environment}
    settings = read_settings(workspace, named, environment)
    settings = settings if settings.backend == "api" else replace(settings, backend="claude")
    wrong = _lacking(settings)
    if wrong is not None:
        return {"investigator": _instead({settings.backend: wrong})}
    taken = _claude(workspace, settings, hear)
    return {"investigator": taken.investigator, "fixer": taken.fixer}


def _offline(said: str, degraded: tuple[str, ...] = ()) -> Chosen:
    return Chosen(OfflineInvestigator(), None, f"Investigating with {said}", degraded)


def _instead(missing: Mapping[str, Failure]) -> Chosen:
    """The engine where Claude was asked for. `missing`: by way, why it cannot be reached."""
    why = "; ".join(redacted(f"{way}: {f.state}: {f.detail.rstrip('.')}") for way, f in missing.items())
    said = f"Claude cannot be reached ({why})"
    return _offline(f"the offline investigator, because {said}", (f"lead: {said}; {AGAIN}",))


def _claude(workspace: Path, settings: Settings, hear: Hear) -> Chosen:
    from traindx.investigators.claude import ClaudeInvestigator
    from traindx.investigators.claude_code.fixing import ClaudeFixer

    said = (f"Investigating with Claude ({_model(settings)}), at most {_budget(settings)} and "
            f"{settings.seconds_all:g} s. Probes run in a protected copy, where you agreed that code is run (--run)")
    return Chosen(ClaudeInvestigator(settings, hear), ClaudeFixer(workspace.absolute(), settings, hear), said)


def _model(settings: Settings) -> str:
    if settings.backend == "claude":
        return settings.model or "the CLI's default model"
    from traindx.investigators.messages_api.client import model_of

    return f"{model_of(settings.model, settings)} over the Messages API"


def _budget(settings: Settings) -> str:
    if settings.backend == "api" and not settings.token_prices:
        return f"{settings.tokens_all:,} tokens (TRAINDX_TOKEN_PRICES turns them into dollars)"
    return f"${settings.dollars_all:g}"


async def unreachable(settings: Settings) -> Failure | None:
    """Why Claude gives no answer to a small question, or None where it does. Costs a fraction of a cent."""
    from traindx.investigators.claude_code.askers import asker_of
    from traindx.investigators.claude_code.conversation import Question
    from traindx.policy import Scope

    folder = Path(tempfile.mkdtemp(prefix="traindx-probe-"))
    form = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"],
            "additionalProperties": False}
    question = Question("probe", "Role: probe", "Answer ok: true, at once.", form, (), settings.model)
    once = replace(settings, retries=0, turns_each=3, effort="", dollars_all=min(PROBE_DOLLARS, settings.dollars_all),
                   tokens_all=min(PROBE_TOKENS, settings.tokens_all))
    try:
        reply = await asker_of(folder, once, Scope(folder), folder).ask(question, PROBE_SECONDS)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return reply.failure
