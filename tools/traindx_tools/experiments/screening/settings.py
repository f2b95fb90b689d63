"""The settings of a program with the value that each has now: its command line, its configuration files, its source.

Read as text: nothing is imported or run. Each is typed so that `set:TYPED=VALUE` means it alone.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from traindx_tools.errors import BadUsage
from traindx_tools.experiments.interventions.writing import config_files, defaults
from traindx_tools.experiments.interventions.writing.options import OptionOfProgram, normalised, options_of
from traindx_tools.experiments.interventions.writing.program import CallText, Program
from traindx_tools.experiments.interventions.writing.set_key import read_config, settings_files

MOST = 400
"""Settings of one program: a larger file is a table of data."""


@dataclass(frozen=True)
class Setting:
    """One setting: how it is typed, and its value (bool, int, float or str)."""

    typed: str
    value: bool | int | float | str
    choices: tuple[str, ...] = ()
    """Other values that the program knows, as far as its text shows them."""
    file: str = ""
    line: int | None = None
    """Where it stands, as far as that is known."""

    @property
    def name(self) -> str:
        """Without the file."""
        return self.typed.rpartition(":")[2]


def settings_of(program: Program) -> list[Setting]:
    """Every setting whose value is known: options first, then keys of files, then what stands in the source.

    A default in the source that an option or a key of the same name overrides is left out. Raises BadUsage where the
    command starts no Python file.
    """
    known: dict[str, Setting] = {}
    texts = compared_texts(program.trees.values())
    for setting in (*_options(program), *_keys(program), *_in_source(program)):
        last = normalised(setting.name.rpartition(".")[2]).lower()
        if setting.typed in known or (setting.typed.partition(":")[0].endswith(".py") and any(
                normalised(s.name.rpartition(".")[2]).lower() == last for s in known.values())):
            continue
        known[setting.typed] = _with_choices(setting, texts, program)
        if len(known) >= MOST:
            break
    return list(known.values())


def _options(program: Program) -> Iterator[Setting]:
    call = program.call
    if call is None:
        return
    for name, tree in program.trees.items():
        for option in options_of(tree):
            given = _given(call, option)
            value: object = option.default if given is None else given
            key, choices = normalised(option.flag), tuple(str(c) for c in option.choices)
            line = _line_of(program.sources[name], option.flag)
            if option.kind in ("on", "off") and value is None:
                value = option.kind == "off"
            if isinstance(value, (bool, int, float, str)) and option.kind != "values":
                yield Setting(key, value, choices, name, line)


def _given(call: CallText, option: OptionOfProgram) -> bool | int | float | str | None:
    """The value that the command gives to an option, None where it gives none."""
    words = [w.text for w in call.words[call.script_at + 1:]]
    for at, word in enumerate(words):
        name, equals, value = word.partition("=")
        if not name.startswith("-") or normalised(name) not in option.keys:
            continue
        if option.kind in ("on", "off", "both"):
            return (option.kind != "off") is not name.startswith("--no-")
        return _literal(value if equals else words[at + 1] if at + 1 < len(words) else "")
    return None


def _keys(program: Program) -> Iterator[Setting]:
    for name in settings_files(program):
        try:
            text, data = read_config(program, name)
        except (BadUsage, OSError):
            continue
        for path in config_files.keys_of(data):
            value = _at(data, path)
            if isinstance(value, (bool, int, float, str)) and value != "" and all("." not in p for p in path):
                yield Setting(f"{name}:{'.'.join(path)}", value, (), name, _line_of(text, path[-1]))


def _at(data: Any, path: Sequence[str]) -> Any:
    for key in path:
        data = data[config_files.key_in(data, key)]
    return data


def _in_source(program: Program) -> Iterator[Setting]:
    for name, tree in program.trees.items():
        text = program.sources[name]
        for default in defaults.defaults_of(text, tree):
            value = _literal(text[default.start:default.end])
            quoted = text[default.start:default.start + 1] in "\"'"
            if value is not None and (quoted or not isinstance(value, str)):
                yield Setting(f"{name}:{default.name}", value, (), name, default.line)


def _line_of(text: str, word: str) -> int | None:
    """The one line that holds a word, None where several do."""
    sought = re.compile(rf"(?<![\w-]){re.escape(word)}(?![\w-])")
    found = [n for n, line in enumerate(text.splitlines(), 1) if sought.search(line)]
    return found[0] if len(found) == 1 else None


def _literal(text: str) -> bool | int | float | str | None:
    try:
        value = ast.literal_eval(text)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return text or None
    return value if isinstance(value, (bool, int, float, str)) else None


def compared_texts(trees: Any) -> list[frozenset[str]]:
    """Groups of texts that a program takes as alternatives: compared with one expression, or keys of one dictionary."""
    groups: dict[str, set[str]] = {}
    tables: list[frozenset[str]] = []
    for at, tree in enumerate(trees):
        for node in ast.walk(tree):
            if isinstance(node, ast.Compare) and len(node.ops) == 1:
                told = _texts(node.comparators[0])
                if told:
                    groups.setdefault(f"{at}:{ast.unparse(node.left)}", set()).update(told)
            elif isinstance(node, ast.Match):
                told = {p.value.value for c in node.cases for p in ast.walk(c.pattern)
                        if isinstance(p, ast.MatchValue) and isinstance(p.value, ast.Constant)
                        and isinstance(p.value.value, str)}
                groups.setdefault(f"{at}:{ast.unparse(node.subject)}", set()).update(told)
            elif isinstance(node, ast.Dict):
                keys = [k.value for k in node.keys if isinstance(k, ast.Constant) and isinstance(k.value, str)]
                alike = len({type(v) for v in node.values}) == 1 and not isinstance(node.values[0], ast.Constant)
                if len(keys) == len(node.keys) >= 2 and alike:
                    tables.append(frozenset(keys))
    return [*map(frozenset, groups.values()), *tables]


def _texts(node: ast.expr) -> set[str]:
    items = node.elts if isinstance(node, (ast.Tuple, ast.List, ast.Set)) else [node]
    return {i.value for i in items if isinstance(i, ast.Constant) and isinstance(i.value, str) and i.value}


def _with_choices(setting: Setting, texts: Sequence[frozenset[str]], program: Program) -> Setting:
    """What the code compares a text with, and the files beside a file of that name."""
    value = setting.value
    if setting.choices:
        return replace(setting, choices=tuple(c for c in setting.choices if c != str(value)))
    if not isinstance(value, str):
        return setting
    others = sorted({t for group in texts if value in group for t in group} - {value})
    others += [] if others else list(_beside(value, program.workspace, settings_files(program)))
    return replace(setting, choices=tuple(c for c in others if c != value)[:4])


def _beside(value: str, workspace: Path, configs: Sequence[str]) -> Iterator[str]:
    """Files of the same kind in the folder of a file of the workspace, the most like by name first."""
    from difflib import SequenceMatcher

    path = workspace / value
    if "/" in value[:1] or ".." in Path(value).parts or not path.suffix or not path.is_file():
        return
    named = [p.name for p in path.parent.iterdir() if p.suffix == path.suffix and p.name != path.name and p.is_file()]
    named = [n for n in named if str(Path(value).with_name(n)) not in configs]
    likeness: Mapping[str, float] = {n: SequenceMatcher(None, n, path.name).ratio() for n in named}
    for name in sorted(named, key=lambda n: (-likeness[n], n))[:2]:
        yield str(Path(value).with_name(name))
