"""Which rules speak about which files: `[tool.traindx.audit]` in pyproject.toml, and what the command line adds.

    [tool.traindx.audit]
    select = ["C1"]                      # ids or their beginnings; all by default
    ignore = ["C129"]
    exclude = ["third_party", "*_pb2.py"]
    per-file-ignores = { "tests/*" = ["C103"] }
    fail-on = "high"

Paths are patterns from the folder of pyproject.toml; a folder's name excludes what lies in it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from traindx_tools.errors import BadUsage
from traindx_tools.finding import Finding, Severity
from traindx_tools.rules import rules_in
from traindx_tools.withdrawn import WITHDRAWN

TABLE = "tool.traindx.audit"
NEVER = "never"
MOST_BYTES = 2_000_000


@dataclass(frozen=True)
class Selection:
    """Rules by the beginnings of their ids, and files by patterns below `home`."""

    home: Path = field(default_factory=Path)
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    per_file_ignores: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    fail_on: str = Severity.MEDIUM.value
    """The severity from which on a finding fails the command, or "never"."""

    def excludes(self, path: Path) -> bool:
        """Whether a file is left out."""
        return any(_matches(self._relative(path), pattern) for pattern in self.exclude)

    def wants(self, finding: Finding) -> bool:
        """Whether a finding is told. The longer beginning wins: `select C101` beats `ignore C1`."""
        chosen = _longest(finding.rule, self.select) if self.select else 0
        left_out = _longest(finding.rule, self.ignore)
        if chosen < 0 or left_out >= max(chosen, 0):
            return False
        if finding.where.file is None or not self.per_file_ignores:
            return True
        path = self._relative(Path(finding.where.file))
        return not any(_longest(finding.rule, rules) >= 0 and _matches(path, pattern)
                       for pattern, rules in self.per_file_ignores.items())

    def fails(self, finding: Finding) -> bool:
        """Whether a finding fails the command."""
        return self.fail_on != NEVER and finding.severity.rank >= Severity(self.fail_on).rank

    def narrowed(self, select: Iterable[str] = (), ignore: Iterable[str] = (), fail_on: str = "") -> Selection:
        """With what the command line says: `select` replaces, `ignore` adds. Raises BadUsage for unknown rules."""
        asked = tuple(select)
        chosen, left_out = known(asked, "--select"), known(ignore, "--ignore")
        if asked and not chosen:
            raise BadUsage("--select names no rule: give ids (C102) or beginnings of ids (C1) with commas, or leave it "
                           "out for all rules")
        kept = tuple(i for i in self.ignore if _longest(i, chosen) < 0)  # what is asked for by name is wanted
        return replace(self, select=chosen or self.select, ignore=(*kept, *left_out), fail_on=fail_on or self.fail_on)

    def _relative(self, path: Path) -> str:
        absolute = Path(os.path.realpath(path.parent)) / path.name
        try:
            return absolute.relative_to(os.path.realpath(self.home)).as_posix()
        except ValueError:
            return absolute.as_posix()


def _longest(rule: str, beginnings: Sequence[str]) -> int:
    """The length of the longest beginning of a rule's id; -1 where none is one."""
    return max((len(b) for b in beginnings if rule.startswith(b)), default=-1)


def _matches(path: str, pattern: str) -> bool:
    """A pattern for the whole path, its name, or a folder that it lies in."""
    pattern = pattern.rstrip("/").removeprefix("./")
    parts = path.split("/")
    above = ["/".join(parts[: i + 1]) for i in range(len(parts))]
    return any(fnmatch(p, pattern) for p in (*above, *parts))


def known(rules: Iterable[str], said_in: str) -> tuple[str, ...]:
    """Ids or beginnings of ids in capitals, from a list or from text with commas. Raises BadUsage for unknown ones.

    A rule that was withdrawn is no error: it finds nothing, wherever it is named.
    """
    asked = tuple(part.strip().upper() for text in rules for part in text.split(",") if part.strip())
    ids = rule_ids()
    for rule in asked:
        if not any(i.startswith(rule) for i in ids) and rule not in WITHDRAWN:
            raise BadUsage(f"{said_in} names {rule[:40]!r}, which is no rule of the code auditor: give an id (C102) or "
                           f"the beginning of one (C1). `traindx explain --list` shows them")
    return asked


def rule_ids() -> frozenset[str]:
    """The ids of every rule of the code auditor."""
    from traindx_tools.code_audit.entry import ROOMS
    from traindx_tools.code_reports.suppression import RULE

    return frozenset({RULE.id, *(m.rule.id for room in ROOMS for m in rules_in(room))})


def read_selection(start: Path) -> Selection:
    """What the nearest pyproject.toml at or above a file or folder says. Raises BadUsage where it is wrong."""
    folder = Path(os.path.realpath(start))  # and not resolve(), which refuses a loop of links
    for home in (folder, *folder.parents):
        file = home / "pyproject.toml"
        if os.path.isfile(file):  # and not is_file(), which raises in a folder that cannot be entered
            return selection_from(_table(file), home, str(file))
        if os.path.exists(home / ".git"):
            break
    return Selection(home=folder if os.path.isdir(folder) else folder.parent)


def _table(file: Path) -> Any:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        if file.stat().st_size > MOST_BYTES:
            raise BadUsage(f"{file} is larger than {MOST_BYTES:,} bytes and was not read")
        data = tomllib.loads(file.read_bytes().decode("utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:  # TOMLDecodeError and UnicodeDecodeError are ValueErrors
        raise BadUsage(f"{file} cannot be read as TOML: {str(error)[:200]}. Correct it, or audit with --isolated") \
            from error
    for part in TABLE.split("."):
        data = data.get(part, {}) if isinstance(data, dict) else {}
    return data


def selection_from(table: Any, home: Path, said_in: str) -> Selection:
    """The selection that a table means. Raises BadUsage that names the key."""
    if not isinstance(table, dict):
        raise BadUsage(f"{said_in}: [{TABLE}] is a table, got {str(table)[:80]!r}")
    for key, value in table.items():
        if key not in _KEYS:
            raise BadUsage(f"{said_in}: [{TABLE}] has no key {key[:40]!r}. There are: {', '.join(_KEYS)}")
        if not _KEYS[key][0](value):
            raise BadUsage(f"{said_in}: [{TABLE}] {key} is {_KEYS[key][1]}, got {str(value)[:80]!r}")
    where = f"{said_in}: [{TABLE}]"
    return Selection(
        home=home,
        select=known(table.get("select", ()), f"{where} select"),
        ignore=known(table.get("ignore", ()), f"{where} ignore"),
        exclude=tuple(table.get("exclude", ())),
        per_file_ignores={pattern: known(rules, f"{where} per-file-ignores")
                          for pattern, rules in table.get("per-file-ignores", {}).items()},
        fail_on=table.get("fail-on", Severity.MEDIUM.value),
    )


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(v, str) for v in value)


FAIL_ON = (*(s.value for s in Severity), NEVER)
_KEYS = {
    "select": (_is_texts, "a list of rules"),
    "ignore": (_is_texts, "a list of rules"),
    "exclude": (_is_texts, "a list of patterns"),
    "per-file-ignores": (lambda v: isinstance(v, dict) and all(_is_texts(x) for x in v.values()),
                         "a table from patterns to lists of rules"),
    "fail-on": (lambda v: v in FAIL_ON, f"one of {', '.join(FAIL_ON)}"),
}
