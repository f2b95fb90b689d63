"""What is asked about the scope of a run, and the answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from traindx_tools.set_aside import SetAside

SHOWN = 4
"""Names of a list that are told; the others are counted."""


@dataclass(frozen=True)
class Asked:
    """What a person said of the run's files."""

    entry: tuple[str, ...] = ()
    """Files that they call the entry point (`--entry`)."""
    everything: bool = False
    """Judge all files that were given (`--all`)."""
    commands: tuple[str, ...] = ()
    """Commands that start the run, as they were typed (`--run`, `--verify`)."""
    code: tuple[Path, ...] | None = None
    """Python files among which the run's own lie, where the paths that were given do not say so."""
    which: int | None = None
    """The number of the run that is asked about, where several were read, from 1; None: the last one."""
    named: tuple[Path, ...] | None = None
    """Python files that they named one by one; None: those among the paths."""
    aside: tuple[SetAside, ...] = ()
    """Rules and failure modes that they disagree with."""
    older: tuple[Path, ...] = ()
    """Logs that show the program as it was before a change, beside newer ones: they are not judged."""


@dataclass(frozen=True, eq=False)
class LogLines:
    """The lines of one log, numbered from 1, in bounded number: its head and its end."""

    name: str
    lines: tuple[tuple[int, str], ...]
    written: int = 0
    """When the file was last written, in seconds; 0 where that is not known."""
    chosen: bool = False
    """The person named this very file."""


@dataclass(frozen=True)
class Scope:
    """The files of one run. Everything else that was found lies beside it and is not judged."""

    entry: tuple[Path, ...] = ()
    how: str = ""
    """How the entry point is known, in words; "" where it is not known."""
    judged: tuple[Path, ...] = ()
    beside: tuple[Path, ...] = ()
    configs_beside: tuple[Path, ...] = ()
    """Configuration files that were found and that the run does not name."""
    logs_beside: tuple[Path, ...] = ()
    """Logs that another script wrote."""
    code_known: bool = True
    """Whether there was Python code to choose from at all."""
    unread: tuple[tuple[Path, str], ...] = ()
    """Files of the run whose code could not be read, and why: they are not among the judged."""

    arguments: tuple[str, ...] | None = None
    """With which a log shows that Python started the entry point; None where none shows it."""
    copies: tuple[tuple[Path, Path], ...] = ()
    """Notebooks that are runs of another one, each with that one: their outputs are read, their code is its."""

    def without_unread(self, why: Mapping[str, str]) -> Scope:
        """The same where files could not be read; `why`: the reasons, by path."""
        return replace(self, judged=tuple(p for p in self.judged if str(p) not in why),
                       unread=tuple((p, why[str(p)]) for p in self.judged if str(p) in why))

    @property
    def blind(self) -> tuple[Path, str] | None:
        """A file that had to be read to judge the run's code, and why it was not: the entry point, or the only one."""
        return next((u for u in self.unread if u[0] in self.entry or not self.judged), None)

    def to_json(self, name: Callable[[str], str]) -> dict[str, Any]:
        """Plain values; `name` tells a path as seen from the root."""
        return {"entry": [name(str(p)) for p in self.entry], "how": self.how or self._unknown,
                "judged": [name(str(p)) for p in self.judged],
                "beside": [name(str(p)) for p in (*self.beside, *self.configs_beside, *self.logs_beside)],
                **({"runs_of": {name(str(p)): name(str(of)) for p, of in self.copies}} if self.copies else {}),
                **({"unread": [f"{name(str(p))} ({why})" for p, why in self.unread]} if self.unread else {})}

    @property
    def _unknown(self) -> str:
        return "the entry point is not known" if self.code_known else "no code was given"


NO_TRAINING = "nothing in it trains"
"""Why code that lies beside a log is not taken for the run's own."""
OTHER_PROGRAMS = "none of them writes a line of the log"
"""Why several programs that lie beside a log are not taken for its own."""
NOTHING_ASKED = Asked()
UNKNOWN = Scope(code_known=False)
"""The scope of what has no code."""


def listed(names: list[str]) -> str:
    """Names as a list in words, the rest of a long one counted."""
    rest = len(names) - SHOWN
    return ", ".join(names) if rest <= 1 else f"{', '.join(names[:SHOWN])} and {rest} more"


def in_words(scope: dict[str, Any]) -> list[str]:
    """The scope, from its JSON, in one or two sentences for a person; none where there was no code."""
    judged, beside, unread = list(scope["judged"]), list(scope["beside"]), list(scope.get("unread", ()))
    if not judged and not beside and not unread:
        return []
    count = f"{len(judged)} files: " if len(judged) > 1 else ""
    entry = f"entry point {listed(list(scope['entry']))}: {scope['how']}" if scope["entry"] else (
        f"{scope['how']}, so that all code that was given is judged; --entry FILE names it")
    said = [f"Judged {count}{listed(judged)} ({entry})."] if judged else ["No code was judged."]
    if unread:
        said.append(f"Not judged, for it could not be read: {listed(unread)}.")
    runs = dict(scope.get("runs_of", {}))
    if runs:
        more = f" and {len(runs) - 1} more" if len(runs) > 1 else ""
        first, of = next(iter(runs.items()))
        said.append(f"{first}{more} is a run of {of}: what it printed is read, its code is judged there.")
    if beside:
        files = "1 file beside it was" if len(beside) == 1 else f"{len(beside)} files beside it were"
        why = f" ({scope['how']})" if scope["how"] in (NO_TRAINING, OTHER_PROGRAMS) else ""
        said.append(f"{files} not judged: {listed(beside)}{why}. --entry FILE or --all changes this.")
    return said
