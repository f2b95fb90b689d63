"""What a shell completes in place of an argument: the ids of sessions, of rules and of failure modes, else files.

A completion that fails says nothing: it would be printed into the line that is being typed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import click
    from click.shell_completion import CompletionItem

    from traindx.session_folder import SessionFolder

_OF_A_RULE = re.compile(r"[A-Za-z]\d")
MOST = 50
"""Sessions that are offered at most, the newest."""
_DECIDE = frozenset({"approve", "reject", "revise"})
"""Commands about a session that waits for a decision."""
_WAITING = "awaiting approval"
_NO_FILES = frozenset({*_DECIDE, "review", "resume", "show", "explain", "completion", "doctor", "sessions", "mcp"})
"""Commands whose arguments are no paths; their options may be."""


def with_files() -> None:
    """Makes files stand in every shell where nothing else is known: an argument of most commands is a path.

    Without it a shell that completes our commands completes no path behind them any more.
    """
    from click.shell_completion import CompletionItem, add_completion_class, get_completion_class

    for shell in ("bash", "zsh", "fish"):
        of_click = get_completion_class(shell)
        if of_click is None:
            continue

        class OrFiles(of_click):  # type: ignore[misc, valid-type]
            def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
                found: list[CompletionItem] = super().get_completions(args, incomplete)
                behind = args and not incomplete.startswith("-") and (
                    args[0] not in _NO_FILES or args[-1].startswith("-"))
                return found or ([CompletionItem(incomplete, type="file")] if behind else [])

        add_completion_class(OrFiles, shell)


def session_ids(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Sessions whose id begins so, the newest first, each with its status.

    Those of `--workspace` where it was typed before, else of this folder, else of all that are known.
    """
    from click.shell_completion import CompletionItem

    try:
        found = _sessions(context.params.get("workspace"), begun)
        waits = context.info_name in _DECIDE
        return [CompletionItem(name, help=said) for name, said in found if not waits or said == _WAITING]
    except Exception:  # noqa: BLE001 - see the module
        return []


def _sessions(workspace: str | None, begun: str) -> Iterator[tuple[str, str]]:
    from traindx.known_folders import known_folders
    from traindx.session_folder import SessionFolder, folders
    from traindx.workspace import SCRATCH

    here = folders(Path(workspace or ".").absolute() / SCRATCH)
    found = here or ([] if workspace else [p for known in known_folders() for p in folders(known / SCRATCH)])
    named = {p.name: p for p in sorted(found, key=lambda p: p.name, reverse=True) if p.name.startswith(begun)}
    for name, path in list(named.items())[:MOST]:
        yield name, _status(SessionFolder(path))


def _status(folder: SessionFolder) -> str:
    from traindx.session_result import result_of
    from traindx_tools.errors import TraindxError

    try:
        return result_of(folder).status.replace("_", " ")
    except (TraindxError, OSError):  # damaged: `traindx show` says what is wrong with it
        return "cannot be read"


def options_of_a_fix(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """A and B, as they are written everywhere."""
    from click.shell_completion import CompletionItem

    return [CompletionItem(name) for name in ("A", "B") if name.startswith(begun.upper())]


def changes(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Changes of experiments whose name begins so, each with what it does."""
    from click.shell_completion import CompletionItem

    try:
        from traindx_tools.experiments.interventions import interventions

        return [CompletionItem(n, help=i.about) for n, i in interventions().items() if n.startswith(begun)]
    except Exception:  # noqa: BLE001 - see the module
        return []


def probes(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Probes whose name begins so."""
    from click.shell_completion import CompletionItem

    try:
        from traindx_tools.live.probes import known_names

        known = (*((name, about) for name, about, _ in known_names()), ("all", "all of them"))
        return [CompletionItem(name, help=about) for name, about in known if name.startswith(begun)]
    except Exception:  # noqa: BLE001 - see the module
        return []


def page_ids(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Rules and failure modes whose id begins so, in either case, each with its title."""
    from click.shell_completion import CompletionItem

    try:
        return [CompletionItem(name, help=title) for name, title in _pages(begun)
                if name.lower().startswith(begun.lower())]
    except Exception:  # noqa: BLE001 - see the module
        return []


def _pages(begun: str) -> Iterator[tuple[str, str]]:
    """The catalog is read only where what was typed can be one of its ids: reading it takes half a second."""
    from traindx_tools.catalog.catalog import load_catalog
    from traindx_tools.rules import rule_names

    yield from rule_names().items()
    if not _OF_A_RULE.match(begun):
        yield from ((name, mode.title) for name, mode in load_catalog().items())
