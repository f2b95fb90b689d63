"""Configuration that a run prints into its log: Namespaces, dataclasses, dicts, Megatron's and Hydra's dumps.

A setting is only believed where the log says that it is one: a call-like dump, a heading such as "config:" or
"hyperparameters", a command line, or a well-known setting's name in the lines before the first metrics.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from itertools import pairwise
from typing import Any, NamedTuple

from traindx_tools.errors import UnreadableInput
from traindx_tools.on_logs.configs.flat import MOST_KEYS, flat, scalar
from traindx_tools.on_logs.configs.names import SYNONYMS, normalised
from traindx_tools.on_logs.configs.yaml_files import load_yaml

_HEAD_LINES = 60
"""Lines at the start of a log in which plain `name value` pairs are settings, if no metric came before."""
_MOST_LINES = 5_000
"""Lines in which dumps are looked for: a run prints its configuration before it trains."""
_MOST_DUMP_LINES = 600
_MOST_BRACKETS = 2_000
_LONGEST = 60_000

_NAMES = r"(?:config\w*|cfg|args|arguments|hparams|hyper[- _]?param\w*|settings|options)"
_WORDS = ("config", "cfg", "args", "arguments", "hparams", "hyper", "settings", "options")
_CALL = re.compile(r"\b\w{0,60}(?:Namespace|Config|Configuration|Args|Arguments|Params|Hyperparameters|Settings)\(")
_DICT = re.compile(r"\b" + _NAMES + r"\b(?:\W{0,4}| (?:from|of|in|read from|loaded from) \S{1,200}:? )(\{.*)",
                   re.IGNORECASE)
_USER_CONFIG = re.compile(r"config\w*\b[^{]{0,20}\bjson = (\{.*)", re.IGNORECASE)
"""What DeepSpeed prints last: the configuration file as it was given."""
_HEADING = re.compile(r"[^\w{]{0,60}(?:.{0,60}\W)?" + _NAMES + r"\W{0,60}$", re.IGNORECASE)
_MEGATRON = re.compile(r"\s*(\w{2,80}) \.{2,} (\S.{0,500}?)\s*$")
_SETTING = re.compile(r"(\s*)(?:- )?([A-Za-z_][\w./-]{0,80}(?: [\w-]{1,40}){0,2})\s*[:=](?:\s+(.*))?$")
_FLAG = re.compile(r"(?:^|\s)--([A-Za-z][\w.-]{0,80})(?:[= ](?!-)(\S{1,300}))?")
_COMMAND = re.compile(r"\b(?:python3?|torchrun|accelerate launch|deepspeed|srun)\b.{0,300}\s--[A-Za-z]")
_LOG_PREFIX = re.compile(r"(?:\[[^\]]{1,60}\]\s?){1,4}-?\s?"
                         r"|\d{4}-\d\d-\d\d[ T][\d:.,]{5,20}\s?(?:[-|]\s?\w+\s?[-|:]?\s?)?")
_METRIC = re.compile(r"(?i)\b(?:loss|acc(?:uracy)?)\b\W{0,4}\d|\b(?:step|iter|epoch)\b\W{0,3}\d")
_PAIR = re.compile(r"([A-Za-z][\w-]{0,40}(?: [A-Za-z][\w-]{0,40})?)\s?[=: ]\s?"
                   r"([-+]?\d[\d,]{0,20}(?:\.\d{1,20})?(?:[eE][-+]?\d{1,3})?)(?![\w.])")
_DIGITS = bytes.maketrans(b"123456789", b"000000000")
"""No pattern here tells one digit from another."""
_KNOWN = frozenset(name for names in SYNONYMS.values() for name in names)


def read_config_lines(lines: Iterable[tuple[int, str]]) -> dict[str, Any]:
    """Flat configuration that a log prints, from (line number, text) pairs; `{}` where it prints none.

    Only the first lines are looked at and the iterable is not exhausted. The first mention of a key wins.
    """
    head = _head(lines)
    told = _told(head)
    found: dict[str, Any] = {}
    for part in (_dumps(head, told), _blocks(head, told), _pairs(head)):
        for key, value in part.items():
            if len(found) < MOST_KEYS:
                found.setdefault(key, value)
    return found


class _Line(NamedTuple):
    """What a line may be: whether it holds a dump, heads a block, begins one (behind a logger's prefix), goes on with
    one."""

    dumps: bool
    heads: bool
    begins: bool
    goes_on: bool


def _told(head: list[str]) -> list[_Line]:
    """What each line may be; those that differ in digits only are looked at once."""
    known: dict[bytes, _Line] = {}
    every = []
    for text in head:
        alike = text.encode("utf-8", "surrogatepass").translate(_DIGITS)
        one = known.get(alike)
        if one is None:
            behind = _behind_prefix(text)
            one = known[alike] = _Line(
                is_dump(text) or (" .." in text and _MEGATRON.match(behind) is not None)
                or ("--" in text and _COMMAND.search(text) is not None),
                _named(text) and _HEADING.match(text) is not None, _is_item(behind), _is_item(text))
        every.append(one)
    return every


def _behind_prefix(text: str) -> str:
    """A line without what a logger writes before its message."""
    prefix = _LOG_PREFIX.match(text)
    return text[prefix.end():] if prefix else text


def _is_item(text: str) -> bool:
    plain = text.lstrip()
    return bool(plain) and (plain.startswith("- ") or _SETTING.match(text) is not None)


def is_dump(text: str) -> bool:
    """Whether a line prints a whole configuration in brackets: `Namespace(...)`, `settings from run.yaml {...}`."""
    return ("(" in text and _CALL.search(text) is not None) or (
        "{" in text and _named(text) and (_DICT.search(text) or _USER_CONFIG.search(text)) is not None)


def _named(text: str) -> bool:
    """Whether one of the words that `_NAMES` begins with is in a text: told before what is sought slowly."""
    folded = text.casefold()
    return any(word in folded for word in _WORDS)


def is_setting(text: str) -> bool:
    """Whether a line states settings and nothing else: a dump, a command line, or one name with its value."""
    return any(p.match(text) for p in (_MEGATRON, _SETTING)) or is_dump(text) or _COMMAND.search(text) is not None


def _head(lines: Iterable[tuple[int, str]]) -> list[str]:
    head: list[str] = []
    for _, text in lines:
        head.append(text.rstrip()[:_LONGEST])
        if len(head) >= _MOST_LINES:
            break
    return head


def _dumps(head: list[str], told: list[_Line]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    brackets = 0
    for index, (text, line) in enumerate(zip(head, told, strict=True)):
        brackets += text.count("(") + text.count("{")
        if brackets > _MOST_BRACKETS:
            break
        if not line.dumps:
            continue
        call, named = _CALL.search(text), _DICT.search(text) or _USER_CONFIG.search(text)
        dots = _MEGATRON.match(_behind_prefix(text))
        if dots is not None:
            found.update(flat({dots[1]: scalar(dots[2])}))
        elif call is not None:
            found.update(_call(_balanced(head, index, call.end() - 1)))
        elif named is not None:
            found.update(_dict(_balanced(head, index, named.start(1))))
        elif _COMMAND.search(text) is not None:
            found.update({m[1].replace("-", "_"): True if m[2] is None else scalar(m[2]) for m in _FLAG.finditer(text)})
    return found


def _balanced(head: list[str], index: int, start: int) -> str:
    """The text from an opening bracket to its partner, over several lines where needed; "" where it never closes."""
    depth, quote, length = 0, "", 0
    kept: list[str] = []
    for offset, text in enumerate(head[index : index + _MOST_DUMP_LINES]):
        piece = text[start if offset == 0 else 0 :]
        for position, character in enumerate(piece):
            if quote:
                quote = "" if character == quote else quote
            elif character in "'\"":
                quote = character
            elif character in "([{":
                depth += 1
            elif character in ")]}":
                depth -= 1
                if depth == 0:
                    return "\n".join([*kept, piece[: position + 1]])
        kept.append(piece)
        quote = ""
        length += len(piece)
        if length > _LONGEST:
            break
    return ""


def _call(text: str) -> dict[str, Any]:
    """`(lr=0.001, model=Model(dim=8))` as a flat mapping."""
    found: dict[str, Any] = {}
    for item in _split(text[1:-1]):
        key, equals, value = item.partition("=")
        if not equals or not key.strip().isidentifier():
            continue
        inner = re.match(r"\s*\w+(\(.*\))\s*$", value, re.DOTALL)
        nested = _call(inner[1]) if inner and len(value) < len(text) else {}
        if nested:
            found.update({f"{key.strip()}.{k}": v for k, v in nested.items()})
        else:
            found.update(flat({key.strip(): scalar(value)}))
    return found


def _split(text: str) -> list[str]:
    items, depth, quote, start = [], 0, "", 0
    for position, character in enumerate(text):
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
        elif character == "," and depth == 0:
            items.append(text[start:position])
            start = position + 1
    return [*items, text[start:]]


def _dict(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = scalar(text)
    return flat(value) if isinstance(value, dict) else {}


def _blocks(head: list[str], told: list[_Line]) -> dict[str, Any]:
    """Indented `key: value` blocks that have a heading or are nested, as Hydra and OmegaConf print them."""
    found: dict[str, Any] = {}
    index = 0
    while index < len(head):
        headed = told[index].heads
        if not headed and (not told[index].begins or index + 1 == len(head) or not told[index + 1].goes_on):
            index += 1
            continue
        block = _block(head, index + headed, told)
        if len(block) >= 2 and (headed or _nested(block)):
            found.update(_yaml(block))
        index += max(len(block) + headed, 1)
    return found


def _block(head: list[str], index: int, told: list[_Line]) -> list[str]:
    if index >= len(head) or not told[index].begins:
        return []
    block = [_behind_prefix(head[index])]
    for at in range(index + 1, min(index + _MOST_DUMP_LINES, len(head))):
        if not told[at].goes_on:
            break
        block.append(head[at])
    return block


def _nested(block: list[str]) -> bool:
    return any(a.rstrip().endswith(":") and _indent(b) > _indent(a) and ": " in b for a, b in pairwise(block))


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip())


def _yaml(block: list[str]) -> dict[str, Any]:
    text = "\n".join(block)
    try:
        value = load_yaml("log", text)
    except (UnreadableInput, RecursionError):
        value = None
    if isinstance(value, dict):
        return flat(value)
    settings = [m for m in map(_SETTING.match, block) if m is not None and m[3]]
    return {m[2]: scalar(m[3]) for m in settings}


def _pairs(head: list[str]) -> dict[str, Any]:
    """Well-known settings written as `name value` in the lines before the first metrics."""
    found: dict[str, Any] = {}
    for text in head[:_HEAD_LINES]:
        if _METRIC.search(text) is not None:
            break
        if text[:1].isspace():
            continue
        for match in _PAIR.finditer(text[:2000]):
            for name in (match[1], match[1].split(" ")[-1]):
                key = normalised(name)
                if key in _KNOWN:
                    found.setdefault(key, scalar(match[2].replace(",", "")))
                    break
    return found
