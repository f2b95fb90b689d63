"""Configuration files: YAML, JSON, TOML, ini-like text, Gin. Nothing in them is executed or followed."""

from __future__ import annotations

import configparser
import json
import re
import sys
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Any

from traindx_tools.errors import UnreadableInput
from traindx_tools.on_logs.configs.flat import flat, scalar
from traindx_tools.on_logs.configs.yaml_files import load_yaml

MOST_CHARACTERS = 8_000_000

_ASSIGNMENT = re.compile(r"\s*(?P<key>[\w./@-]{1,200})\s*[=:]\s*(?P<value>[^#;\n]{0,2000})")


def read_config(path: str, text: str) -> dict[str, Any]:
    """Flat configuration with dotted keys ("optim.lr") from the text of a file; `path` only names its format.

    Without a known ending the format is found by trying JSON, TOML, YAML and `key = value` lines in turn. Raises
    UnreadableInput for a file that is damaged, too large, or asks a YAML reader to build Python objects.
    """
    if len(text) > MOST_CHARACTERS:
        raise UnreadableInput(f"{path}: a configuration of {len(text):,} characters; at most {MOST_CHARACTERS:,} are "
                              "read. Give the part that holds the training arguments.")
    parse = _PARSERS.get(PurePosixPath(path.replace("\\", "/")).suffix.lower(), _any)
    try:
        return flat(parse(path, text))
    except RecursionError:
        raise UnreadableInput(f"{path}: nested too deeply to be a configuration") from None


def _json(path: str, text: str) -> Any:
    try:
        return _mapping(json.loads(text.lstrip("\ufeff")), path)
    except ValueError as error:
        raise UnreadableInput(f"{path}: no valid JSON: {error}") from None


def _toml(path: str, text: str) -> Any:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        return tomllib.loads(text)
    except ValueError as error:  # a TOMLDecodeError is one, and so is a number of thousands of digits
        raise UnreadableInput(f"{path}: no valid TOML: {error}") from None


def _yaml(path: str, text: str) -> Any:
    return _mapping(load_yaml(path, text), path)


def _ini(path: str, text: str) -> Any:
    parser = configparser.RawConfigParser(strict=False, allow_no_value=True)
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # keys keep their case
    try:
        parser.read_string(text)
    except configparser.Error:
        return _assignments(path, text)
    return {section: {k: scalar(v or "") for k, v in parser.items(section)} for section in parser.sections()}


def _assignments(path: str, text: str) -> Any:
    found = {}
    for line in text.splitlines():
        match = _ASSIGNMENT.match(line)
        if match is not None and not line.lstrip().startswith(("#", ";", "//")):
            found[match["key"].replace("/", ".")] = scalar(match["value"])
    if not found:
        raise UnreadableInput(f"{path}: no `key = value` line found; expected YAML, JSON, TOML or an ini-like file")
    return found


def _any(path: str, text: str) -> Any:
    for parse in (_json, _toml, _yaml):
        try:
            return parse(path, text)
        except UnreadableInput as error:
            if "tag" in str(error):
                raise
    return _ini(path, text)


def _mapping(value: Any, path: str) -> Any:
    if not isinstance(value, dict):
        raise UnreadableInput(f"{path}: a configuration is a mapping of names to values, got {type(value).__name__}")
    return value


_PARSERS: dict[str, Callable[[str, str], Any]] = {
    ".json": _json, ".yaml": _yaml, ".yml": _yaml, ".toml": _toml,
    ".ini": _ini, ".cfg": _ini, ".conf": _ini, ".gin": _assignments, ".env": _assignments, ".properties": _assignments,
}
