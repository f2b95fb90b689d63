"""A configured value ended the run: the line that raised was given it, and the error speaks of its type or of itself.

The traceback says where and of which types or value ("between instances of 'float' and 'str'", "not str", "got -1");
the code says which settings that very call was given; the configuration says what they are. Where one setting alone
fits, or one alone is named in the line of the library that raised, it is the cause. A value that was computed from
settings is not followed. `kind`: "type", "value".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_settings.seen import SOURCE, Handed, SettingsSeen, Stopped
from traindx_tools.on_settings.written import Setting, SettingsFile
from traindx_tools.rules import Rule, Threshold

SHORTEST = 3
"""Characters of a number that is recognised in a message: 0 and 16 stand in many."""

RULE = Rule(
    id="S103",
    name="setting-stops-the-program",
    title="A configured value ended the run",
    severity=Severity.CRITICAL,
    sees="The settings that the line which raised was given, their written values, and the types or the value that "
         "the error names.",
    matters="The run does not start, and a traceback in a library does not say which setting it is about.",
    alike=("A type that is wrong in the code whatever the configuration says.",
           "A value that was right in the file and was changed on its way."),
    confirm=("Load the file and print the value with its type.",
             "Write a value of the expected type in a copy and start again."),
    thresholds={"number": Threshold(SHORTEST, "characters", "a shorter number stands in many messages")},
)

_NAMES = {"str": "str", "int": "int", "float": "float", "bool": "bool", "null": "NoneType", "map": "dict",
          "list": "list"}
_TYPES = re.compile(r"\b(str|int|float|bool|NoneType|dict|list)\b")
_WORDS = {"str": "a text", "int": "a whole number", "float": "a number", "bool": "a boolean",
          "NoneType": "nothing (null)", "dict": "a map", "list": "a list"}
_NUMBERS = frozenset({"int", "float"})

Found = tuple[SettingsFile, Setting, Handed]


def check(seen: SettingsSeen) -> Iterator[Finding]:
    """At most one finding an error."""
    for stopped in seen.stopped:
        for file, line in stopped.own:
            given = [(f, s, h) for h in seen.handed if h.line <= line <= h.end_line and _same(h.file, file)
                     for f, s in _written(seen.files, h.keys)]
            found = _at_fault(stopped, given)
            if found is not None:
                yield _finding(stopped, found, line, _named_types(stopped, found[1]))
                break


def _same(one: str, other: str) -> bool:
    """Whether two paths are of one file, as far as both go: the log may be of another machine."""
    a, b = (PurePosixPath(p.replace("\\", "/")).parts[::-1] for p in (one, other))
    common = min(len(a), len(b), 2) if a[:2] == b[:2] else 1
    return a[:common] == b[:common]


def _written(files: Sequence[SettingsFile], keys: tuple[str, ...]) -> list[tuple[SettingsFile, Setting]]:
    """The setting under these keys, where one file alone has it."""
    found = [(f, s) for f in files for s in f.settings() if s.path == keys and s.type in _NAMES]
    return found if len(found) == 1 else []


def _at_fault(stopped: Stopped, given: Sequence[Found]) -> Found | None:
    fits = [g for g in given if _named_types(stopped, g[1]) or _is_named(stopped.message, g[1])]
    if len({g[1].path for g in fits}) > 1:
        fits = [g for g in fits if g[2].argument and re.search(rf"\b{re.escape(g[2].argument)}\b", stopped.innermost)]
    return fits[0] if len({g[1].path for g in fits}) == 1 else None


def _named_types(stopped: Stopped, setting: Setting) -> frozenset[str]:
    """The types that the message of a TypeError names, where the setting's own is the odd one among them.

    A number fits many places: it is odd only where it is named alone ("'float' object cannot be ...", "got float").
    """
    if stopped.type.rpartition(".")[2] not in ("TypeError", "AttributeError"):
        return frozenset()
    named, own = frozenset(_TYPES.findall(stopped.message)), _NAMES[setting.type]
    if own not in named or (own in _NUMBERS and named - {own} and "not " + own not in stopped.message):
        return frozenset()
    return named


def _is_named(message: str, setting: Setting) -> bool:
    """Whether the message holds the value itself as a word."""
    text = setting.text
    long = len(text) >= (SHORTEST if setting.type in ("int", "float") else 2)
    return setting.type in ("str", "int", "float") and long and re.search(
        rf"(?<![\w.-]){re.escape(text)}(?!\w|\.\d)", message) is not None


def _expected(named: frozenset[str], message: str, own: str) -> str:
    if "integer" in message:
        return "a whole number"
    if named & _NUMBERS - {own} or "real number" in message:
        return "a number"
    others = sorted(named - {own})
    return _WORDS[others[0]] if len(others) == 1 else ""


def _finding(stopped: Stopped, found: Found, line: int, named: frozenset[str]) -> Finding:
    file, setting, handed = found
    key, own = ".".join(setting.path), _NAMES[setting.type]
    expected = _expected(named, stopped.message, own) if named else ""
    message = re.sub(r"\s+", " ", stopped.message)[:160]
    value = f'"{setting.text}"' if setting.type == "str" else setting.text or setting.type
    given = f" as {handed.argument}" if handed.argument else ""
    code = PurePosixPath(handed.file.replace("\\", "/")).name
    return RULE.finding(
        f"{file.path}:{setting.line} sets {key} to {value} ({_WORDS[own]}), and {code}:{line} hands it to "
        f"{handed.callee}{given}, which stops with {stopped.type.rpartition('.')[2]}: {message}"
        + (f"; {expected} is expected" if expected else ""),
        Location(file=file.path, line=setting.line or None), SOURCE, bearing=Bearing.CAUSE,
        measured={"kind": "type" if named else "value", "key": key, "name": setting.key, "text": setting.text,
                  "file": file.path, "read": own, "expected": expected or "another value", "argument": handed.argument,
                  "callee": handed.callee, "type": stopped.type, "code": f"{code}:{line}"})
