"""A setting is written under a name that nothing of this run asks for, and under another name it is asked for.

The configuration file was opened by the run, and no code of it holds the key: no text, no attribute, no keyword. A name
that differs in spelling, by a slip, or is that of a section of another file of the run with the same keys is asked
for instead, and no file gives it: the value of the file never arrives, and a default or another file's value applies.
`kind`: "spelling", "section", "default".
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_settings.seen import (
    ALIKE,
    SOURCE,
    SettingsSeen,
    abbreviates,
    children,
    plain,
    shares_word,
    slip_of,
)
from traindx_tools.on_settings.written import Setting, SettingsFile
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="S101",
    name="setting-never-arrives",
    title="A written setting is never asked for by its name",
    severity=Severity.HIGH,
    sees="the keys of the configuration files that the run opened against every name that its code can ask by",
    matters="the run trains with a default or with another file's value, whatever this file says",
    alike=("a key for people or another program: no name like it is asked for", "a map that is handed on whole: its "
           "keys are parameters of what takes it"),
    confirm=("Change the value and start again: the run does not change by a bit.",
             "Print the settings that the program ends up with."),
    thresholds={"alike": Threshold(ALIKE, "ratio of difflib", "one letter in seven")},
)

MOST_UNASKED = 200
"""Keys of one file that no code asks for, above which it is data (a vocabulary, annotations) and no configuration."""


def check(seen: SettingsSeen) -> Iterator[Finding]:
    """A finding for each such key."""
    for file in seen.files:
        if sum(not seen.named.asks(s.key) for s in file.settings()) > MOST_UNASKED:
            continue
        for setting in file.settings():
            found = _asked_instead(seen, file, setting) if setting.path and _is_key(file, setting) else None
            if found is None:
                continue
            kind, other, how = found
            section = setting.type == "map"
            yield RULE.finding(
                f"{'the section' if section else 'the setting'} {'.'.join(setting.path)} of {file.path} is never used: "
                f"no code of the run reads the key {setting.key}, it reads {other} {how}; what the file "
                f"writes under it ({_shown(setting)}) is silently ignored",
                Location(file=file.path, line=setting.line or None), SOURCE,
                severity=_severity(kind, setting.key, other),
                bearing=Bearing.SIGN if kind == "default" else Bearing.CAUSE,
                measured={"kind": kind, "key": ".".join(setting.path), "name": setting.key, "asked": other,
                          "value": _shown(setting), "file": file.path},
                patch=file.replaced(setting.line, setting.key, other, f"the key is called {other}"))


def _severity(kind: str, key: str, other: str) -> Severity:
    """A shared word alone (version, api_version) is a guess."""
    if kind != "default":
        return RULE.severity
    return Severity.MEDIUM if slip_of(key, other) else Severity.LOW


def _is_key(file: SettingsFile, setting: Setting) -> bool:
    """Whether it is an entry of a map, and not of a list."""
    return setting.key in file.maps.get(setting.path[:-1], ())


def _asked_instead(seen: SettingsSeen, file: SettingsFile, setting: Setting) -> tuple[str, str, str] | None:
    key, siblings = setting.key, file.maps[setting.path[:-1]]
    if key in seen.named.texts or not any(c.isalpha() for c in plain(key)):
        return None
    section = _section(seen, file, setting, siblings)
    if section:
        return "section", section, "(as another configuration file has it)"
    if key in seen.named.attributes:
        return None
    spelt = [n for n in seen.spelt.get(plain(key), ()) if n not in siblings]
    if spelt and not _converted(seen, key, siblings):
        return "spelling", min(spelt), "in another spelling"
    near = [n for n in seen.defaulted if slip_of(n, key) or shares_word(n, key)]
    return ("default", near[0], "with a default") if len(near) == 1 else None


def _section(seen: SettingsSeen, file: SettingsFile, setting: Setting, siblings: frozenset[str]) -> str:
    """The section of another file of the run that this one is meant for, "" where there is none."""
    own = children(setting)
    if not own:
        return ""
    for other in seen.others(file):
        for name in other.maps.get(setting.path[:-1], ()):
            theirs = other.maps.get((*setting.path[:-1], name), frozenset())
            if name in siblings or name == setting.key or not own & theirs or setting.path in other.maps:
                continue
            if seen.named.asks(name) and (abbreviates(name, setting.key) or slip_of(name, setting.key)
                                          or plain(name) == plain(setting.key)):
                return name
    return ""


def _converted(seen: SettingsSeen, key: str, siblings: frozenset[str]) -> bool:
    """Whether keys beside it are spelt otherwise than the code does too: the program converts them all."""
    spelt = ((k, seen.spelt.get(plain(k), ())) for k in siblings if k != key)
    return any(names and k not in names for k, names in spelt)


def _shown(setting: Setting) -> str:
    if setting.type == "map":
        return ", ".join(f"{i.key}: {i.text or i.type}" for i in setting.items[:4])[:120]
    return (setting.text or setting.type)[:80]
