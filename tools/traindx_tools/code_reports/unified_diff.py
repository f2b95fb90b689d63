"""Proposed changes as one unified diff that `git apply` and `patch -p1` take. Only text is made; nothing is written."""

from __future__ import annotations

import codecs
import difflib
import io
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from traindx_tools.finding import Finding, Patch
from traindx_tools.source_files.texts import Text

_CARRIAGE_RETURN = re.compile(r"\r(?!\n)")
"""A line end of old Macintosh files, which git and patch take for a part of the line."""


@dataclass(frozen=True)
class Proposed:
    """A diff, the patches in it, and those that were left out.

    Left out is what touches the same lines as another patch, and everything in a file whose lines end in a bare
    carriage return or whose encoding lacks a letter of the change. `raw` are the bytes to give on: every file's lines
    in its own encoding.
    """

    raw: bytes
    used: tuple[Patch, ...]
    left_out: tuple[Patch, ...]

    @property
    def diff(self) -> str:
        """The diff as text for people."""
        return self.raw.decode("utf-8", "replace")


def proposed(findings: Iterable[Finding], texts: Mapping[str, Text], home: str | None = None) -> Proposed:
    """The patches of all findings as one diff, with paths as seen from `home` (default: the current directory)."""
    by_file: dict[str, list[Patch]] = {}
    for finding in findings:
        for patch in finding.patch:
            known = by_file.setdefault(patch.file, [])
            audited = texts.get(patch.file)
            if (audited is None or not audited.cells) and not any(_same(patch, p) for p in known):
                known.append(patch)
    diff: list[bytes] = []
    used: list[Patch] = []
    left_out: list[Patch] = []
    for path, patches in sorted(by_file.items()):
        chosen, others = _apart(patches)
        read = texts.get(path) or _configuration(path)
        if read is None:
            continue
        made = None if has_bare_returns(read.text) else _encoded(read, chosen, os.path.relpath(path, home))
        left_out += patches if made is None else others
        if made is not None:
            used += chosen
            diff.append(made)
    return Proposed(b"".join(diff), tuple(used), tuple(left_out))


def with_patches(text: str, patches: Iterable[Patch]) -> str:
    """A file's text with these changes in it, without those that touch the lines of an earlier one."""
    apart, _ = _apart(list(dict.fromkeys(patches)))
    return "".join(_changed(list(io.StringIO(text, newline="")), apart))


def has_bare_returns(text: str) -> bool:
    """Whether some line ends in a carriage return alone."""
    return _CARRIAGE_RETURN.search(text) is not None


def _configuration(path: str) -> Text | None:
    """The text of a configuration file that a patch is about."""
    try:
        raw = Path(path).read_bytes()
        text = raw.decode("utf-8-sig")
    except (OSError, ValueError):
        return None
    return Text(path, text, "", encoding="utf-8-sig" if raw.startswith(codecs.BOM_UTF8) else "utf-8")


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


def _encoded(text: Text, patches: list[Patch], shown: str) -> bytes | None:
    """The diff of one file in its own encoding; None where that lacks a letter of the change."""
    old = list(io.StringIO(text.text, newline=""))  # lines as Python counts them: a form feed ends none
    new = _changed(old, patches)
    encoding = text.encoding
    if encoding == "utf-8-sig":  # the mark is a part of the first line, whatever that is
        encoding = "utf-8"
        old, new = (["\ufeff" + lines[0], *lines[1:]] if lines else [] for lines in (old, new))
    name = shown.replace(os.sep, "/")
    head = [f"--- {_name('a/' + name)}\n", f"+++ {_name('b/' + name)}\n"]
    body = list(difflib.unified_diff(old, new))[2:]
    told = (line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in body)
    try:
        said = "".join(told).encode(encoding)
    except UnicodeEncodeError:
        return None
    return "".join(head).encode("utf-8", "surrogateescape") + said if body else b""


def _name(path: str) -> str:
    """A path as git writes it: quoted where a letter would end it, and a tab behind white space."""
    if any(letter in '"\\' or ord(letter) < 32 for letter in path):
        known = {"\n": "\\n", "\t": "\\t", "\r": "\\r", '"': '\\"', "\\": "\\\\"}
        return '"' + "".join(known.get(c, f"\\{ord(c):03o}" if ord(c) < 32 else c) for c in path) + '"'
    return path + "\t" if " " in path else path


def _changed(old: list[str], patches: list[Patch]) -> list[str]:
    """The lines with the patches in them: new ones end as those beside them do, the last one as the last did."""
    new = list(old)
    is_open = bool(old) and not _ending(old[-1])
    for patch in sorted(patches, key=lambda p: p.line, reverse=True):
        first, end = patch.line - 1, patch.end_line
        removed = patch.replacement == "" and patch.original != ""
        written = [] if removed else patch.replacement.split("\n")
        beside = old[first:end] or old[max(first - 1, 0) : first] or old[:1]
        ends = [_ending(line) for line in beside]
        if not ends[-1:] or not ends[-1]:  # the file's last line, without an end
            usual = next((e for e in (*reversed(ends), *map(_ending, reversed(old))) if e), "\n")
            ends = [e or usual for e in ends] or [usual]
        added = [line + ends[min(i, len(ends) - 1)] for i, line in enumerate(written)]
        if is_open and end >= len(old):
            if first == len(old):  # something is put behind the last line
                new[-1] += ends[-1]
                is_open = False
            if added:
                added[-1] = written[-1]
        new[first:end] = added
    return new


def _ending(line: str) -> str:
    return "\r\n" if line.endswith("\r\n") else "\n" if line.endswith("\n") else ""
