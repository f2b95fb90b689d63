"""What a shell completes in place of an argument: the ids of sessions, of rules and of failure modes.

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


def session_ids(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Sessions whose id begins so, the newest first, each with its status.

    Those of `--workspace` where it was typed before, else of this folder, else of all that are known.
    """
    from click.shell_completion import CompletionItem

    try:
        return [CompletionItem(name, help=said) for name, said in _sessions(context.params.get("workspace"), begun)]
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
