"""Who asks: through the CLI (`claude`) or over the Messages API alone (`api`), with the session's purse."""

from __future__ import annotations

from pathlib import Path

from traindx.investigators.bench.bench import Bench
from traindx.investigators.claude_code.asking import Asker
from traindx.investigators.claude_code.conversation import FOLDER, Conversations
from traindx.investigators.claude_code.purse import Purse
from traindx.notices import Hear, nobody
from traindx.policy import Scope
from traindx.settings import Settings


def asker_of(workspace: Path, settings: Settings, scope: Scope, scratch: Path, hear: Hear = nobody,
             phase: str = "gather", bench: Bench | None = None) -> Asker:
    """The asker of the session that lives in this folder."""
    conversations, purse = Conversations.of(scratch), purse_of(settings, scratch)
    if settings.backend == "api":
        from traindx.investigators.messages_api.asking import ApiAsker

        return ApiAsker(workspace, settings, scope, conversations, purse, hear, phase, bench)
    from traindx.investigators.claude_code.cli import CliAsker

    return CliAsker(workspace, settings, scope, conversations, purse, hear, phase, bench)


def purse_of(settings: Settings, scratch: Path) -> Purse:
    """In dollars, which the CLI reports; over the API in tokens, unless a person says what one costs."""
    if settings.backend == "api" and not settings.token_prices:
        return Purse(settings.tokens_all, scratch / FOLDER / "spent-tokens.jsonl", "tokens")
    return Purse(settings.dollars_all, scratch / FOLDER / "spent.jsonl")
