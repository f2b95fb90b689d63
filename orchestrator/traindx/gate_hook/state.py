"""What the gate knows of one workspace, and its JSON. Tuples instead of dataclasses: importing those takes too long."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

Place = tuple[str, int, int]
"""Path relative to the workspace, first line, last line; (path, 1, 0) is a file that does not exist yet."""

FORMAT = 1


class StateDamaged(Exception):
    """The gate's file is not what the gate writes: it is treated as a closed gate."""


class Original(NamedTuple):
    """The text of a place as it was when the option was approved."""

    path: str
    original: str


class Bound(NamedTuple):
    """The text that a place may get, where the diagnosis shows it; no lines: the place is deleted."""

    path: str
    first: int
    last: int
    lines: tuple[str, ...]


class Option(NamedTuple):
    """One option of a diagnosis as a person was shown it; what `policy.Approved` asks for."""

    option: str
    places: tuple[Place, ...]
    verify: tuple[str, ...] = ()
    """Commands that the diagnosis names as its verification."""
    edits: tuple[Original, ...] = ()
    bound: tuple[Bound, ...] = ()
    """What the diagnosis shows of the new text: an approval covers that text, not only its lines."""

    @property
    def files(self) -> tuple[str, ...]:
        """The files that it may change, each once."""
        return tuple(dict.fromkeys(path for path, _, _ in self.places))


class Shown(NamedTuple):
    """A complete diagnosis that stood in the conversation."""

    digest: str
    conversation: str
    cause: str
    options: tuple[Option, ...]

    def option(self, name: str) -> Option | None:
        """The option of this name."""
        return next((o for o in self.options if o.option == name), None)


class Approval(NamedTuple):
    """A person's approval of one option of one diagnosis."""

    digest: str
    cause: str
    option: Option
    by: str
    baseline: dict[str, str | None]
    """The files as they were, None for one that did not exist."""
    left: dict[str, str]
    """Mark of the content that the approved edits left, by path; a file that somebody else changed is not restored."""
    passed: bool = False


class Strike(NamedTuple):
    """A fix that failed its verification."""

    key: str
    cause: str
    places: tuple[Place, ...]
    learned: str


class State(NamedTuple):
    """One workspace's gate."""

    workspace: str
    session: str
    opened: str
    phase: str = "gather"
    shown: Shown | None = None
    approval: Approval | None = None
    strikes: tuple[Strike, ...] = ()
    runs: bool = False
    """The person agreed that commands run here without write protection."""
    conversation: str = ""
    """The conversation that opened it; the gate ends with it."""

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {**_plain(self), "format": FORMAT}


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        fields = getattr(value, "_fields", None)
        return {f: _plain(getattr(value, f)) for f in fields} if fields else [_plain(v) for v in value]
    return dict(value) if isinstance(value, Mapping) else value


def state_from(data: Any) -> State:
    """The state that `to_json` made. Raises StateDamaged."""
    try:
        if data["format"] != FORMAT:
            raise StateDamaged(f"it has format {data['format']!r}, expected {FORMAT}")
        shown, approval = data["shown"], data["approval"]
        return State(
            str(data["workspace"]), str(data["session"]), str(data["opened"]), str(data["phase"]),
            None if shown is None else Shown(str(shown["digest"]), str(shown["conversation"]), str(shown["cause"]),
                                             tuple(map(_option, shown["options"]))),
            None if approval is None else Approval(
                str(approval["digest"]), str(approval["cause"]), _option(approval["option"]), str(approval["by"]),
                dict(approval["baseline"]), dict(approval["left"]), bool(approval["passed"])),
            tuple(Strike(str(s["key"]), str(s["cause"]), _places(s["places"]), str(s["learned"]))
                  for s in data["strikes"]),
            bool(data["runs"]), str(data.get("conversation", "")))
    except (KeyError, TypeError, ValueError) as error:
        raise StateDamaged(f"{type(error).__name__}: {error}") from error


def _places(given: Any) -> tuple[Place, ...]:
    return tuple((str(path), int(first), int(last)) for path, first, last in given)


def _option(given: Any) -> Option:
    return Option(str(given["option"]), _places(given["places"]), tuple(map(str, given["verify"])),
                  tuple(Original(str(e["path"]), str(e["original"])) for e in given["edits"]),
                  tuple(Bound(str(b["path"]), int(b["first"]), int(b["last"]), tuple(map(str, b["lines"])))
                        for b in given.get("bound", ())))
