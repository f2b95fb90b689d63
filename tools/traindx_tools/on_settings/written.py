"""What a configuration file says: a tree of keys with the line, the text and the parsed type of each value.

YAML is composed, not constructed: a node keeps its text and whether it was quoted, so that what a person wrote and what
the reader makes of it can be told apart.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from traindx_tools.finding import Patch

MAX_BYTES = 200_000
MOST_KEYS = 2_000
"""Keys of one file that are looked at: a file with more is data."""
DEEPEST = 8
ENDINGS = (".yaml", ".yml", ".toml", ".json")


@dataclass(frozen=True, eq=False)
class Setting:
    """One value. `path`: keys from the root; `text`: as it is written, "" where the format does not keep it.

    `type`: "bool", "int", "float", "str", "null", "map" or "list". `plain`: written without quotes.
    """

    path: tuple[str, ...]
    type: str
    text: str = ""
    line: int = 0
    plain: bool = True
    items: tuple[Setting, ...] = ()
    """The entries of a list, or the values of a map."""
    key_type: str = "str"
    """What its key is read as, where that was written without quotes; "str" for all else."""

    @property
    def key(self) -> str:
        """The last key."""
        return self.path[-1] if self.path else ""


@dataclass(frozen=True, eq=False)
class SettingsFile:
    """One file that was read."""

    path: str
    root: Setting
    kind: str
    """"yaml", "toml" or "json"."""
    maps: Mapping[tuple[str, ...], frozenset[str]] = field(default_factory=dict)
    """The keys of each map, by its path."""
    lines: tuple[str, ...] = ()
    """The text, line by line."""

    def replaced(self, line: int, old: str, new: str, summary: str) -> tuple[Patch, ...]:
        """A change of one word of a line (from 1), where it stands there once; nothing else."""
        text = self.lines[line - 1] if 0 < line <= len(self.lines) else ""
        places = list(re.finditer(rf"(?<![\w.-]){re.escape(old)}(?![\w.-])", text.split("#")[0]))
        if len(places) != 1:
            return ()
        at = places[0]
        return (Patch(self.path, line, line, f"{text}\n", f"{text[:at.start()]}{new}{text[at.end():]}\n", summary),)

    def settings(self) -> Iterator[Setting]:
        """Every value below the root, parents first."""
        yield from _below(self.root)


def _below(setting: Setting) -> Iterator[Setting]:
    for item in setting.items:
        yield item
        yield from _below(item)


def read(path: str) -> SettingsFile | None:
    """The file as a tree; None where it is none, too large, damaged, or its reader was never imported here."""
    file = Path(path)
    try:
        if file.stat().st_size > MAX_BYTES:
            return None
        return parsed(path, file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None


def parsed(path: str, text: str) -> SettingsFile | None:
    """The same of a text. Raises ValueError on a text of another form."""
    ending = Path(path).suffix.lower()
    if ending in (".yaml", ".yml"):
        root = _of_yaml(text)
        kind = "yaml"
    else:
        kind = ending.removeprefix(".")
        data = json.loads(text) if kind == "json" else _toml(text)
        root = _of_value(data, (), text.splitlines()) if isinstance(data, dict) else None
    if root is None or root.type != "map":
        return None
    below = list(_below(root))
    if len(below) > MOST_KEYS:
        return None
    maps = {s.path: frozenset(i.key for i in s.items) for s in (root, *below) if s.type == "map"}
    return SettingsFile(path, root, kind, maps, tuple(text.splitlines()))


def _toml(text: str) -> Any:
    reader = sys.modules.get("tomllib") or sys.modules.get("tomli") or sys.modules.get("toml")
    return reader.loads(text) if reader is not None else None


_TAGS = {"tag:yaml.org,2002:bool": "bool", "tag:yaml.org,2002:int": "int", "tag:yaml.org,2002:float": "float",
         "tag:yaml.org,2002:null": "null", "tag:yaml.org,2002:str": "str"}  # fmt: skip


def _of_yaml(text: str) -> Setting | None:
    yaml = sys.modules.get("yaml")
    if yaml is None:
        return None
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error
    return None if node is None else _of_node(node, (), [MOST_KEYS], 0)


def _of_node(node: Any, path: tuple[str, ...], left: list[int], depth: int) -> Setting:
    left[0] -= 1
    line = node.start_mark.line + 1
    if left[0] < 0 or depth > DEEPEST:
        return Setting(path, "str", "", line)
    if isinstance(node.value, str):
        return Setting(path, _TAGS.get(node.tag, "str"), node.value, line, node.style is None)
    if node.value and isinstance(node.value[0], tuple):
        items = tuple(_keyed(key, value, path, left, depth) for key, value in node.value)
        return Setting(path, "map", "", line, items=items)
    if node.tag == "tag:yaml.org,2002:map":
        return Setting(path, "map", "", line)
    return Setting(path, "list", "", line, items=tuple(_of_node(v, path, left, depth + 1) for v in node.value))


def _keyed(key: Any, value: Any, path: tuple[str, ...], left: list[int], depth: int) -> Setting:
    name = key.value if isinstance(key.value, str) else "?"
    made = _of_node(value, (*path, name), left, depth + 1)
    key_type = _TAGS.get(key.tag, "str") if getattr(key, "style", "") is None else "str"
    return Setting(made.path, made.type, made.text, key.start_mark.line + 1, made.plain, made.items, key_type)


_JSON = {bool: "bool", int: "int", float: "float", str: "str", type(None): "null"}


def _of_value(value: Any, path: tuple[str, ...], lines: list[str], depth: int = 0) -> Setting:
    line = _line(path[-1], lines) if path else 1
    if isinstance(value, dict) and depth <= DEEPEST:
        items = tuple(_of_value(v, (*path, str(k)), lines, depth + 1) for k, v in list(value.items())[:MOST_KEYS])
        return Setting(path, "map", "", line, items=items)
    if isinstance(value, list):
        return Setting(path, "list", "", line,
                       items=tuple(_of_value(v, path, lines, depth + 1) for v in value[:100] if depth <= DEEPEST))
    return Setting(path, _JSON.get(type(value), "str"), str(value)[:200], line, not isinstance(value, str))


def _line(key: str, lines: list[str]) -> int:
    """The first line that writes this key; of a section its header."""
    found = re.compile(rf"""^\s*(?:\[+[^\]]*?)?["']?{re.escape(key)}["']?\s*[:=\]]|["']{re.escape(key)}["']\s*:""")
    return next((n for n, line in enumerate(lines, 1) if found.search(line)), 0)
