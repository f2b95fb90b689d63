"""A YAML value is read as another type than it was meant: `no` as False, `1e-3` as text, `12:30` as a number.

YAML 1.1, which most readers of Python follow, makes booleans of yes, no, on, off, numbers in base 60 of 12:30, octal
numbers of 010, and text of 1e-3 (a float needs a dot). Each is told where its neighbours show what was meant: one
boolean among texts. A number that is text is a remark: programs convert it.
Keys are read so too: of 008, 009 and 010 two are texts and the third is the number 8.
`kind`: "boolean-among-texts", "sixty", "octal", "number-is-text", "keys".
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_settings.seen import SOURCE, SettingsSeen
from traindx_tools.on_settings.written import Setting, SettingsFile
from traindx_tools.rules import Rule, Threshold

FEWEST = 2
"""Neighbours that are texts: a list of a word and a switch says nothing."""
_WORDS = re.compile(r"(?:yes|no|on|off|y|n)", re.IGNORECASE)
_SIXTY = re.compile(r"[-+]?[1-9]\d*(?::[0-5]?\d)+(?:\.\d*)?")
_NUMBER = re.compile(r"[-+]?\d+(?:\.\d*)?[eE][-+]?\d+")

RULE = Rule(
    id="S102",
    name="read-as-other-type",
    title="A configured value is read as another type than it was meant",
    severity=Severity.HIGH,
    sees="the text of each YAML value that the run read against what YAML 1.1 makes of it and of its neighbours",
    matters="the value is compared, looked up or counted as something else, without an error",
    alike=("a list of values of all types", "a switch: on and off alone are booleans as meant"),
    confirm=("Load the file and print the value with its type.", "Put it in quotes and start again."),
    thresholds={"neighbours": Threshold(FEWEST, "texts beside it, and nothing else", "the others show the type")},
)


def check(seen: SettingsSeen) -> Iterator[Finding]:
    """A finding for each such value."""
    for file in seen.files:
        if file.kind != "yaml":
            continue
        for setting in (file.root, *file.settings()):
            if setting.type == "list":
                yield from _among_texts(file, setting)
            elif setting.type == "map":
                yield from _keys(file.path, setting)
            elif setting.type in ("int", "float", "str") and setting.plain and setting.path:
                yield from _number(file.path, setting)


def _among_texts(file: SettingsFile, listed: Setting) -> Iterator[Finding]:
    """Booleans that were written as a word, in a list whose other entries are texts."""
    odd = [i for i in listed.items if i.type == "bool" and i.plain and _WORDS.fullmatch(i.text)]
    rest = [i for i in listed.items if all(i is not o for o in odd)]
    if not odd or len(rest) < FEWEST or any(i.type != "str" for i in rest):
        return
    value, path = odd[0].text.lower() in ("yes", "on", "y"), file.path
    yield RULE.finding(
        f"{path} lists {odd[0].text} without quotes under {'.'.join(listed.path) or 'its root'}: YAML reads it as the "
        f"boolean {value} and not as the text {odd[0].text!r}, while the other {len(rest)} entries are texts",
        Location(file=path, line=odd[0].line), SOURCE, bearing=Bearing.CAUSE,
        measured={"kind": "boolean-among-texts", "key": ".".join(listed.path), "text": odd[0].text, "file": path,
                  "read": str(value), "name": listed.key},
        patch=file.replaced(odd[0].line, odd[0].text, f'"{odd[0].text}"', "the text in quotes"))


def _keys(path: str, table: Setting) -> Iterator[Finding]:
    """Keys of one map that are written alike and read as several types, or in another base.

    Zero-padded keys mean their digits: from 010 on YAML makes other numbers of them, and texts of those with 8 or 9.
    """
    padded = [i for i in table.items if re.fullmatch(r"0\d+", i.key)]
    octal = [i for i in padded if i.key_type == "int"]
    moved = [i for i in octal if _octal(i.key) != int(i.key)]
    words = [i for i in table.items if i.key_type == "bool"]
    others = [i for i in table.items if i.key_type == "str" and i not in padded]
    where = ".".join(table.path) or "its root"
    if len(padded) >= FEWEST and moved:
        texts = [i.key for i in padded if i.key_type == "str"]
        rest = f", and {texts[0]} and {len(texts) - 1} more as texts" if len(texts) > 1 else (
            f", and {texts[0]} as a text" if texts else "")
        yield _of_keys(path, table, moved[0], f"{path} writes {len(padded)} keys of {where} with leading zeros: YAML "
                       f"reads {moved[0].key} as the octal number {_octal(moved[0].key)}, {len(moved)} keys so{rest}; "
                       "whoever looks up the number that is written finds another entry, or none")
    elif len(words) == 1 and len(others) >= FEWEST and _WORDS.fullmatch(words[0].key):
        value = words[0].key.lower() in ("yes", "on", "y")
        yield _of_keys(path, table, words[0], f"{path} has the key {words[0].key} without quotes under {where}: YAML "
                       f"reads it as the boolean {value}, while the other {len(others)} keys are texts")


def _of_keys(path: str, table: Setting, first: Setting, statement: str) -> Finding:
    return RULE.finding(statement, Location(file=path, line=first.line), SOURCE, bearing=Bearing.CAUSE,
                        measured={"kind": "keys", "key": ".".join(table.path), "text": first.key, "file": path,
                                  "name": table.key})


def _number(path: str, setting: Setting) -> Iterator[Finding]:
    text = setting.text.replace("_", "")
    kind = ("sixty" if setting.type != "str" and _SIXTY.fullmatch(text) else
            "octal" if setting.type == "int" and re.fullmatch(r"[-+]?0[0-7]+", text) else
            "number-is-text" if setting.type == "str" and _NUMBER.fullmatch(text) else "")
    if not kind:
        return
    said = {"sixty": f"a number in base 60 ({_sixty(text):g})", "octal": f"an octal number ({_octal(text)})",
            "number-is-text": "text, not as a number (a float of YAML 1.1 has a dot)"}[kind]
    yield RULE.finding(
        f"{path} writes {'.'.join(setting.path)}: {setting.text}, which YAML reads as {said}",
        Location(file=path, line=setting.line), SOURCE, bearing=Bearing.SIGN,
        severity=Severity.LOW if kind == "number-is-text" else Severity.MEDIUM,
        measured={"kind": kind, "key": ".".join(setting.path), "text": setting.text, "file": path,
                  "name": setting.key})


def _sixty(text: str) -> float:
    value = 0.0
    for part in text.lstrip("+-").split(":"):
        value = 60 * value + float(part)
    return -value if text.startswith("-") else value


def _octal(text: str) -> int:
    return int(text, 8) if re.fullmatch(r"[-+]?0[0-7]+", text) else 0
