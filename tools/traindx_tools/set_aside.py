"""What a person does not want to be told again: a rule or a failure mode that is set aside, with their reason.

Where something is set aside, that is said with the reason, at each run: silence by a file must not look like health.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from typing import TYPE_CHECKING, Any, TypeVar

from traindx_tools.finding import Finding

if TYPE_CHECKING:
    from traindx_tools.triage import Verdict

Anything = TypeVar("Anything")


@dataclass(frozen=True)
class SetAside:
    """A rule (`L204`) or a failure mode (`lr.too-high`) that a person disagrees with."""

    name: str
    because: str
    path: str = ""
    """A pattern of files (`eval/*.py`) it holds for, as seen from the root; "": all. Only a rule can have one."""
    source: str = ""
    """Who said it: a file, as a person may open it, or an option."""

    def covers(self, finding: Finding) -> bool:
        """Whether the finding is one of those that are not to be told."""
        return finding.rule == self.name and (not self.path or fnmatch(finding.where.file or "", self.path))


def left(findings: Iterable[Finding], aside: Sequence[SetAside]) -> tuple[Finding, ...]:
    """The findings that are still told."""
    return tuple(f for f in findings if not any(a.covers(f) for a in aside))


def modes_left(modes: Mapping[str, Anything], aside: Sequence[SetAside]) -> Mapping[str, Anything]:
    """The failure modes that are still weighed."""
    gone = {a.name for a in aside}
    return {name: mode for name, mode in modes.items() if name not in gone} if gone else modes


def counted(findings: Sequence[Finding], aside: Sequence[SetAside]) -> tuple[tuple[SetAside, int], ...]:
    """Each with the number of findings that it kept from being told."""
    return tuple((a, sum(1 for f in findings if a.covers(f))) for a in aside)


def called(name: str) -> str:
    """A rule or a failure mode by what it is called, with its id: an id alone tells nobody what is not told."""
    from traindx_tools.catalog.catalog import load_catalog
    from traindx_tools.rules import title_of

    mode = load_catalog().get(name)
    title = mode.title if mode is not None else title_of(name)
    return f'"{title}" [{name}]' if title else name


def in_words(aside: SetAside, findings: int) -> str:
    """One sentence for a person."""
    what = called(aside.name) + (f" in {aside.path}" if aside.path else "")
    many = f" ({findings} finding{'s' * (findings != 1)})" if findings else ""
    return f"set aside by {aside.source}: {what}{many}, because {aside.because}"


def beside_what_is_set_aside(verdict: Verdict, gone: Sequence[tuple[SetAside, int]]) -> Verdict:
    """A verdict over a run without a fault, which says what was seen and not told."""
    names = [f"{called(a.name)} ({n} finding{'s' * (n != 1)})" for a, n in gone if n]
    if verdict.status != "healthy" or not names:
        return verdict
    return replace(verdict, reason=verdict.reason.replace(
        "No rule saw a fault", f"No rule saw a fault beside what is set aside, {', '.join(names)},", 1))


def to_json(aside: SetAside, findings: int) -> dict[str, Any]:
    """Plain values."""
    return {"name": aside.name, "because": aside.because, "path": aside.path or None, "source": aside.source,
            "findings": findings}
