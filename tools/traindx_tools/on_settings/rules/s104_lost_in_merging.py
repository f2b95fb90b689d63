"""A section of one configuration file took the place of the same section of another: the keys that it lacks are gone.

The run put several files together, and what it holds has the section exactly as one file writes it, though the other
file sets more keys there, which the code asks for: a shallow merge (`dict.update`, `{**a, **b}`) replaces whole
sections. Where such a key is asked for with a default, the default applies without a word.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_settings.seen import SOURCE, SettingsSeen
from traindx_tools.on_settings.written import Setting, SettingsFile
from traindx_tools.on_variables.composed import Composed
from traindx_tools.rules import Rule

RULE = Rule(
    id="S104",
    name="settings-lost-in-merging",
    title="A section replaced another file's section, and keys are gone",
    severity=Severity.HIGH,
    sees="the keys of the configuration files that the run opened against those of what it holds while it trains",
    matters="the run trains with defaults in the place of values that a file of it sets",
    alike=("a section that is meant to be replaced whole: it names another kind, type, class or target",
           "keys that no code asks for by name: left alone"),
    confirm=("Print the settings that the program ends up with.",
             "Merge the files section by section and start again: the run changes."),
)
KINDS = frozenset({"kind", "type", "name", "class", "_target_", "class_path", "target", "mode"})
"""Keys by which a section says what it is the settings of."""
SHOWN = 4


def check(seen: SettingsSeen) -> Iterator[Finding]:
    """A finding for each section that lost keys."""
    told: set[tuple[str, tuple[str, ...]]] = set()
    for composed in seen.composed:
        for base in seen.files:
            for over in seen.others(base):
                for path in _replaced(composed, base, over):
                    lost = [s for s in base.settings() if s.path[:-1] == path and s.type != "map"
                            and s.key not in over.maps[path] and seen.named.asks(s.key)]
                    if lost and (base.path, path) not in told:
                        told.add((base.path, path))
                        yield _finding(seen, composed, base, over, lost)


def _replaced(composed: Composed, base: SettingsFile, over: SettingsFile) -> Iterator[tuple[str, ...]]:
    """Sections that are in what the run holds as `over` writes them, where `base` has more, and gave its own part."""
    root = composed.maps[()]
    if not (root & base.maps[()]) - over.maps[()]:  # nothing of it is in there
        return
    for path, keys in base.maps.items():
        there, other = composed.maps.get(path), over.maps.get(path)
        if path and there is not None and there == other and keys - other and not _another_kind(base, over, path):
            yield path


def _another_kind(base: SettingsFile, over: SettingsFile, path: tuple[str, ...]) -> bool:
    """Whether the section of the other file is that of something else."""
    one, other = ({s.key: s.text for s in f.settings() if s.path[:-1] == path and s.key in KINDS} for f in (base, over))
    return any(key in other and other[key] != text for key, text in one.items()) or bool(set(other) - set(one))


def _finding(seen: SettingsSeen, composed: Composed, base: SettingsFile, over: SettingsFile,
             lost: list[Setting]) -> Finding:
    section = ".".join(lost[0].path[:-1])
    keys = [f"{s.key} ({s.text})" if s.text else s.key for s in lost[:SHOWN]]
    silent = sorted(s.key for s in lost if s.key in seen.named.defaulted)
    more = f" and {len(lost) - SHOWN} more" if len(lost) > SHOWN else ""
    asked = (f"; the code asks for {', '.join(silent)} with a default, which applies" if silent else
             " and the code asks for")
    return RULE.finding(
        f"the section {section} of {over.path} took the place of that of {base.path}: what the run holds "
        f"({composed.where[2]}) lacks {', '.join(keys)}{more}, which {base.path} sets{asked}",
        Location(file=over.path, line=_line(over, lost[0].path[:-1])), SOURCE,
        bearing=Bearing.CAUSE if silent else Bearing.SIGN,
        measured={"kind": "default" if silent else "missing", "section": section, "setting": f"{section}.{lost[0].key}",
                  "keys": ",".join(s.key for s in lost), "configured": lost[0].text, "file": base.path,
                  "over": over.path})


def _line(file: SettingsFile, path: tuple[str, ...]) -> int | None:
    return next((s.line for s in file.settings() if s.path == path), None) or None
