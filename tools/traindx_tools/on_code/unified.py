"""Proposed changes as one unified diff that `git apply` and `patch -p1` take. Only text is made; nothing is written."""

from __future__ import annotations

import difflib
import io
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from traindx_tools.finding import Finding, Patch
from traindx_tools.on_code.files import Text

_CARRIAGE_RETURN = re.compile(r"\r(?!\n)")
"""A line end of old Macintosh files, which git and patch take for a part of the line."""


@dataclass(frozen=True)
class Proposed:
    """A diff, the patches in it, and those that were left out.

    Left out is what touches the same lines as another patch, and everything in a file whose lines end in a bare
    carriage return.
    """

    diff: str
    used: tuple[Patch, ...]
    left_out: tuple[Patch, ...]


def proposed(findings: Iterable[Finding], texts: Mapping[str, Text], home: str | None = None) -> Proposed:
    """The patches of all findings as one diff, with paths as seen from `home` (default: the current directory)."""
    by_file: dict[str, list[Patch]] = {}
    for finding in findings:
        for patch in finding.patch:
            known = by_file.setdefault(patch.file, [])
            audited = texts.get(patch.file)
            if (audited is None or not audited.cells) and not any(_same(patch, p) for p in known):
                known.append(patch)
    diff: list[str] = []
    used: list[Patch] = []
    left_out: list[Patch] = []
    for path, patches in sorted(by_file.items()):
        chosen, others = _apart(patches)
        text = texts[path].text if path in texts else _configuration(path)
        if text is not None and has_bare_returns(text):
            text = None  # git ends a line at a line feed only: no diff by Python's line numbers would apply
        left_out += others if text is not None else patches
        if chosen and text is not None:
            used += chosen
            diff += _diff(path, text, chosen, os.path.relpath(path, home))
    return Proposed("".join(diff), tuple(used), tuple(left_out))


def has_bare_returns(text: str) -> bool:
    """Whether some line ends in a carriage return alone."""
    return _CARRIAGE_RETURN.search(text) is not None


def _configuration(path: str) -> str | None:
    """The text of a configuration file that a patch is about."""
    try:
        return Path(path).read_bytes().decode("utf-8")
    except (OSError, ValueError):
        return None


def _same(one: Patch, other: Patch) -> bool:
    return (one.line, one.end_line, one.replacement) == (other.line, other.end_line, other.replacement)


def _apart(patches: list[Patch]) -> tuple[list[Patch], list[Patch]]:
    """Patches that do not touch one another's lines, the first named first; and the rest."""
    chosen: list[Patch] = []
    others: list[Patch] = []
    for patch in patches:
        clash = any(patch.line <= max(p.end_line, p.line) and p.line <= max(patch.end_line, patch.line) for p in chosen)
        (others if clash else chosen).append(patch)
    return chosen, others


def _diff(path: str, text: str, patches: list[Patch], shown: str) -> Iterator[str]:
    old = list(io.StringIO(text, newline=""))  # lines as Python counts them: a form feed ends none
    new = list(old)
    ending = "\r\n" if old and old[0].endswith("\r\n") else "\n"
    for patch in sorted(patches, key=lambda p: p.line, reverse=True):
        removed = patch.replacement == "" and patch.original != ""
        added = [] if removed else [f"{line}{ending}" for line in patch.replacement.split("\n")]
        if patch.end_line < patch.line and patch.line - 1 == len(new) and new and not new[-1].endswith("\n"):
            new[-1] += ending  # something is put after a last line without an end
        new[patch.line - 1 : patch.end_line] = added
    shown = shown.replace(os.sep, "/")
    for line in difflib.unified_diff(old, new, f"a/{shown}", f"b/{shown}"):
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
