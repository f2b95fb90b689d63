"""Configuration files as nested settings, and back: JSON, YAML, TOML. Nothing in them is executed.

Of YAML each scalar keeps its text and style: readers do not agree on what `1e-3` or `on` is, so it stays as it was.
Comments, anchors and merge keys are resolved and not written again.
"""

from __future__ import annotations

import datetime
import json
import math
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from traindx_tools.errors import BadUsage, UnreadableInput

MOST_BYTES = 16 * 2**20
FORMS = {".json": "json", ".yaml": "yaml", ".yml": "yaml", ".toml": "toml"}


@dataclass(frozen=True)
class Scalar:
    """A scalar of YAML as it is written."""

    tag: str
    text: str
    style: str | None = None

    def __str__(self) -> str:
        return self.text if self.style is None else repr(self.text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scalar) and (self.tag, self.text) == (other.tag, other.text)

    def __hash__(self) -> int:
        return hash((self.tag, self.text))


def form_of(path: Path) -> str:
    """The format by the ending. Raises BadUsage."""
    form = FORMS.get(path.suffix.lower())
    if form is None:
        raise BadUsage(f"{path}: no configuration that is known: expected {', '.join(sorted(FORMS))}, a file of "
                       "variables (.env) or two command lines in quotes")
    return form


def read_tree(path: Path) -> Any:
    """Dicts and lists with leaves. Raises UnreadableInput."""
    form = form_of(path)
    try:
        if path.stat().st_size > MOST_BYTES:
            raise UnreadableInput(f"{path}: larger than {MOST_BYTES // 2**20} MiB, too large for a configuration")
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise UnreadableInput(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UnreadableInput(f"{path}: no text in UTF-8 ({error.reason} at byte {error.start})") from error
    try:
        tree = json.loads(text) if form == "json" else _yaml(text) if form == "yaml" else _toml(text)
    except RecursionError:
        raise UnreadableInput(f"{path}: nested too deeply") from None
    except (ValueError, _yaml_error()) as error:
        raise UnreadableInput(f"{path}: no {form.upper()}: {' '.join(str(error).split())[:200]}") from error
    if not isinstance(tree, dict):
        raise UnreadableInput(f"{path}: holds {type(tree).__name__} and no settings by name")
    return tree


def written(tree: Any, form: str) -> bytes:
    """The tree as a file of this format. Raises BadUsage for what TOML cannot hold."""
    if form == "json":
        return (json.dumps(tree, indent=2, ensure_ascii=False) + "\n").encode()
    if form == "yaml":
        import yaml

        return str(yaml.serialize(_node(tree), allow_unicode=True, width=10_000)).encode()
    return "\n".join(_table(tree, ())).lstrip("\n").encode() + b"\n"


def _yaml_error() -> type[Exception]:
    import yaml

    return yaml.YAMLError


def _yaml(text: str) -> Any:
    import yaml

    node = yaml.compose(text, Loader=yaml.SafeLoader)
    return {} if node is None else _plain(node, yaml.SafeLoader(""), 0)


def _plain(node: Any, loader: Any, depth: int) -> Any:
    import yaml

    if depth > 100:
        raise ValueError("nested too deeply, or an anchor that holds itself")
    if isinstance(node, yaml.ScalarNode):
        return Scalar(node.tag, node.value, node.style)
    if isinstance(node, yaml.SequenceNode):
        return [_plain(n, loader, depth + 1) for n in node.value]
    loader.flatten_mapping(node)
    return {_Quoted(k.value) if k.style else str(k.value): _plain(v, loader, depth + 1) for k, v in node.value}


def _node(value: Any) -> Any:
    import yaml

    if isinstance(value, dict):
        pairs = [(_key(k), _node(v)) for k, v in value.items()]
        return yaml.MappingNode("tag:yaml.org,2002:map", pairs, flow_style=not pairs)
    if isinstance(value, list):
        nested = any(isinstance(v, (dict, list)) for v in value)
        return yaml.SequenceNode("tag:yaml.org,2002:seq", [_node(v) for v in value], flow_style=not nested)
    return yaml.ScalarNode(value.tag, value.text, style=value.style)


def _key(key: str) -> Any:
    """A key as it was written: `1:` stays a number, and in quotes a text."""
    import yaml

    if isinstance(key, _Quoted):
        return yaml.ScalarNode("tag:yaml.org,2002:str", str(key), style='"')
    tag = yaml.SafeLoader("").resolve(yaml.ScalarNode, key, (True, False))  # type: ignore[no-untyped-call]
    return yaml.ScalarNode(tag, key)


class _Quoted(str):
    """A key of YAML that stood in quotes."""

    __slots__ = ()


def _toml(text: str) -> Any:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    return tomllib.loads(text)


def _table(tree: dict[str, Any], path: tuple[str, ...]) -> list[str]:
    inner = {k: v for k, v in tree.items() if isinstance(v, dict)}
    lines = [f"{_toml_key(k)} = {_toml_value(v)}" for k, v in tree.items() if k not in inner]
    for key, value in inner.items():
        here = (*path, key)
        lines += ["", f"[{'.'.join(map(_toml_key, here))}]", *_table(value, here)]
    return lines


def _toml_key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else json.dumps(key, ensure_ascii=False)


def _toml_value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else str(value)
    if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, list):
        return f"[{', '.join(map(_toml_value, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_toml_key(k)} = {_toml_value(v)}" for k, v in value.items()) + "}"
    raise BadUsage(f"TOML cannot hold {value!r}")
