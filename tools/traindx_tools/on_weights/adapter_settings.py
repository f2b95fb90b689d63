"""What `adapter_config.json` asks for: modules, layers, ranks. Its patterns are never compiled."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_NUMBER = re.compile(r"(?<![^.])\d+(?![^.])")
_ALL = frozenset({"all-linear"})


def asked_modules(config: Mapping[str, Any]) -> frozenset[str]:
    """The names of `target_modules` where it is a list of them; none where it is a pattern."""
    told = config.get("target_modules")
    names = frozenset(t for t in told if isinstance(t, str) and t) if isinstance(told, list) else frozenset()
    return frozenset() if names & _ALL else names


def asked_layers(config: Mapping[str, Any]) -> frozenset[int]:
    """The numbers of `layers_to_transform`."""
    told = config.get("layers_to_transform")
    values = told if isinstance(told, list) else [told]
    return frozenset(v for v in values if isinstance(v, int) and not isinstance(v, bool))


def is_asked(config: Mapping[str, Any], module: str) -> bool:
    """Whether the lists name the module and one of its numbers; what they do not say is asked for."""
    names, layers = asked_modules(config), asked_layers(config)
    if config.get("target_parameters") or config.get("layers_pattern"):
        return True
    numbers = {int(n) for n in _NUMBER.findall(module)}
    named = not names or any(f".{module}".endswith(f".{n}") for n in names)
    return named and (not layers or not numbers or bool(numbers & layers))


def is_parameter(config: Mapping[str, Any], module: str) -> bool:
    """Whether it is one of `target_parameters`: experts that lie in one parameter, whose files may keep them apart."""
    told = config.get("target_parameters")
    homes = [str(t).rpartition(".")[0] for t in told] if isinstance(told, list) else []
    return any(h and f".{module}".endswith(f".{h}") for h in homes)


def leaves_layers_out(config: Mapping[str, Any]) -> bool:
    """Whether layers or modules are left out on purpose, or by a pattern."""
    return bool(asked_layers(config) or config.get("exclude_modules") or isinstance(config.get("target_modules"), str)
                or config.get("layers_pattern"))


def asked_rank(config: Mapping[str, Any], module: str) -> int | None:
    """The rank of a module; None where it is not told, or told by a pattern."""
    pattern = config.get("rank_pattern") or {}
    rank = config.get("r")
    if config.get("target_parameters") or not isinstance(pattern, Mapping):
        return None
    for key, value in pattern.items():
        plain = str(key).lstrip("^").rstrip("$").replace("\\.", ".")
        if not re.fullmatch(r"[\w.]+", plain):
            return None
        if f".{module}".endswith(f".{plain}"):
            rank = value
    return rank if isinstance(rank, int) and not isinstance(rank, bool) else None
