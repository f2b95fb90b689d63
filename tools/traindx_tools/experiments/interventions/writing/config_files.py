"""One value of a YAML, JSON or TOML file replaced where it stands; comments, order and formatting stay."""

from __future__ import annotations

import copy
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from traindx_tools.errors import BadUsage, MissingExtra

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SUFFIXES = (".yaml", ".yml", ".json", ".toml")
Path_ = tuple[str, ...]


def parsed(name: str, text: str) -> Any:
    """What the file holds. Raises BadUsage where it is damaged."""
    try:
        if name.endswith(".json"):
            return json.loads(text)
        if name.endswith(".toml"):
            return tomllib.loads(text)
        return _yaml().safe_load(text)
    except (BadUsage, MissingExtra):
        raise
    except Exception as error:
        raise BadUsage(f"{name} cannot be read: {str(error).splitlines()[0]}") from error


def keys_of(data: Any, before: Path_ = ()) -> Iterator[Path_]:
    """The paths of all values that are no mappings, and of mappings themselves after them."""
    if isinstance(data, dict):
        for key, value in data.items():
            yield from keys_of(value, (*before, str(key)))
            if isinstance(value, dict):
                yield (*before, str(key))
    elif before:
        yield before


def matching(data: Any, key: str) -> list[Path_]:
    """The paths that a dotted key means: itself, else those that end with it."""
    wanted = tuple(key.split("."))
    paths = list(keys_of(data))
    if wanted in paths:
        return [wanted]
    return [p for p in paths if p[-len(wanted):] == wanted]


def with_value(name: str, text: str, path: Path_, value: Any) -> str:
    """The text with another value at the path. Raises BadUsage where it cannot be edited so that only this changes."""
    before = parsed(name, text)
    after = _toml_edit(text, path, value) if name.endswith(".toml") else _spanned(name, text, path, value)
    expected = copy.deepcopy(before)
    _put(expected, path, value)
    if after is None or parsed(name, after) != expected:
        if name.endswith(".json"):
            indent = re.search(r"\n([ \t]+)", text)
            return json.dumps(expected, indent=indent.group(1) if indent else None) + ("\n" * text.endswith("\n"))
        raise BadUsage(f"{'.'.join(path)} of {name} cannot be replaced in place: it is written over several lines or "
                       "in a form that is not known. Give a changed copy by patch:file=DIFF.")
    return after


def _put(data: Any, path: Path_, value: Any) -> None:
    for key in path[:-1]:
        data = data[key_in(data, key)]
    data[key_in(data, path[-1])] = value


def key_in(data: dict[Any, Any], key: str) -> Any:
    """The key as the mapping holds it: it may be a number there."""
    return key if key in data else next(k for k in data if str(k) == key)


def _spanned(name: str, text: str, path: Path_, value: Any) -> str | None:
    """YAML and JSON by the marks that a composer sets; None where the text is none that it reads."""
    yaml = _yaml()
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError:
        return None
    for key in path:
        if not isinstance(node, yaml.MappingNode):
            return None
        node = next((v for k, v in node.value if k.value == key), None)
    if node is None:
        return None
    start, end = node.start_mark.index, node.end_mark.index
    written = json.dumps(value) if name.endswith(".json") else _as_yaml(value)
    old = text[start:end]
    tail = old[len(old.rstrip()):]  # a block's mark lies behind the line's end
    space = "" if start and text[start - 1] in " \t-[{," else " "
    return text[:start] + space + written + tail + text[end:]


def _as_yaml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        told = repr(value)
        return told.replace("e", ".0e") if "e" in told and "." not in told else told  # YAML 1.1 reads 1e-05 as a text
    if isinstance(value, str):
        return str(_yaml().safe_dump(value, default_flow_style=True, width=10_000)).removesuffix("\n...\n").rstrip("\n")
    return json.dumps(value)


def _toml_edit(text: str, path: Path_, value: Any) -> str | None:
    """The line `key = value` of the table; dotted keys of a table above it are looked for too."""
    lines = text.splitlines(keepends=True)
    table: Path_ = ()
    for number, line in enumerate(lines):
        head = re.match(r"\s*\[([^\[\]]+)\]\s*(#.*)?$", line)
        if head:
            table = tuple(p.strip().strip("\"'") for p in head.group(1).split("."))
            continue
        found = re.match(r"(\s*)([\w.\"'-]+)(\s*=\s*)", line)
        if not found:
            continue
        here = (*table, *(p.strip().strip("\"'") for p in found.group(2).split(".")))
        if here == path:
            rest = line[found.end():]
            end = found.end() + len(_toml_value(rest))
            lines[number] = line[:found.end()] + _as_toml(value) + line[end:]
            return "".join(lines)
    return None


def _toml_value(rest: str) -> str:
    """The value at the beginning of the rest of a line, without the space and the comment after it."""
    quote = ""
    for at, letter in enumerate(rest):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        elif letter in "#\n\r":
            return rest[:at].rstrip()
    return rest.rstrip()


def _as_toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(value)
    return json.dumps(value)


def _yaml() -> Any:
    try:
        import yaml
    except ImportError as error:
        raise MissingExtra("changing a YAML or JSON file", "pyyaml", "yaml") from error
    return yaml


def is_config(path: Path) -> bool:
    """Whether a file is of a format that can be edited here."""
    return path.suffix in SUFFIXES
