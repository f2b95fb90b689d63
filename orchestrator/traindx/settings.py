"""How the language-model investigator is run: backend, models, effort, budgets, concurrency.

Read from options first, then the environment (`TRAINDX_MODEL`, `TRAINDX_DOLLARS_ALL`, ...), then `[tool.traindx]` in
the workspace's pyproject.toml, then the defaults below. The workspace may hold a project that somebody else wrote, so
its file may name models and lower budgets; what spends money, opens the network or starts another program is a person's
choice and comes by option or environment only. No prices are written here: dollars are what the API reports.
"""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from traindx_tools.errors import BadUsage

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

BACKENDS = ("offline", "auto", "claude", "api")
EFFORTS = ("low", "medium", "high", "xhigh", "max")
READ_AT_MOST = 2**20
"""Bytes of a pyproject.toml; a larger one is refused."""


@dataclass(frozen=True)
class Settings:
    """Everything that a person can set. Limits "each" hold for one specialist, "all" for a whole session."""

    backend: str = "offline"
    model: str = ""
    """Of the lead and the adversary; "" takes what the Claude CLI takes by default."""
    specialist_model: str = ""
    """Of the other specialists; "" takes `model`."""
    effort: str = ""
    """"low" to "max"; "" leaves it to the model."""
    concurrency: int = 4
    """Specialists that work at the same time; the CLI refuses more, and the lead may send them afterwards."""
    seconds_each: float = 300.0
    seconds_all: float = 1200.0
    turns_lead: int = 40
    """Turns of the lead for each thing that is said to it; `turns_each` holds for the others."""
    turns_each: int = 25
    dollars_each: float = 1.0
    dollars_all: float = 5.0
    tokens_each: int = 400_000
    tokens_all: int = 2_000_000
    """Limits of the backend `api` where `token_prices` does not say what a token costs."""
    token_prices: str = ""
    """Dollars for a million tokens: "input,output" or "input,output,cache write,cache read"; for the backend `api`,
    whose answers name no dollars."""
    retries: int = 3
    """Of a request that failed for a passing reason, with growing pauses, by the CLI itself."""
    web: bool = False
    """The user agrees to research on the web."""
    cli_path: str = ""
    """The Claude CLI to run; "" takes the one that the SDK brings."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Further variables of the CLI's process; only in code."""

    def kept(self) -> dict[str, Any]:
        """What a session goes on with when it is resumed by another process: models and budgets, nothing else."""
        return {n: getattr(self, n) for n in NAMES if n not in _BY_PERSON - _KEPT}


_COUNTS = {"concurrency": (1, 64), "turns_each": (1, 1000), "turns_lead": (1, 1000), "retries": (0, 10),
           "tokens_each": (1, 10**9), "tokens_all": (1, 10**9)}
_AMOUNTS = ("seconds_each", "seconds_all", "dollars_each", "dollars_all")
_CHOICES = {"backend": BACKENDS, "effort": ("", *EFFORTS)}
_BY_PERSON = frozenset({"backend", "web", "cli_path", "retries", "token_prices"})
"""Never taken from the workspace's own file."""
_KEPT = frozenset({"backend", "token_prices"})
"""A person's choices that hold for the whole session."""
_ONLY_LOWER = frozenset({"concurrency", "turns_each", "turns_lead", "tokens_each", "tokens_all", *_AMOUNTS})
"""Of these the workspace's own file may only ask for less."""
_IN_CODE = frozenset({"environment"})
NAMES = tuple(f.name for f in dataclasses.fields(Settings) if f.name not in _IN_CODE)


def read_settings(workspace: Path, options: Mapping[str, Any] | None = None,
                  environment: Mapping[str, str] | None = None) -> Settings:
    """The settings for a workspace. `options`: by name, None for "not given". Raises BadUsage, which names the source.
    """
    given: dict[str, Any] = {}
    for name, value in _of_project(workspace).items():
        given[name] = _checked(name, value, "[tool.traindx] in pyproject.toml")
    given = {n: min(v, getattr(Settings, n)) if n in _ONLY_LOWER else v for n, v in given.items()}
    for name in NAMES:
        variable = f"TRAINDX_{name.upper()}"
        if environment is not None and environment.get(variable, "") != "":
            given[name] = _checked(name, environment[variable], f"the variable {variable}")
    for name, value in (options or {}).items():
        if name not in NAMES:
            raise BadUsage(f"there is no setting {name!r}. There are: {', '.join(NAMES)}")
        if value is not None:
            given[name] = _checked(name, value, f"the option {name}")
    return Settings(**given)


def _of_project(workspace: Path) -> dict[str, Any]:
    path = workspace / "pyproject.toml"
    try:
        if not path.is_file() or path.stat().st_size > READ_AT_MOST:
            return {}
        table = tomllib.loads(path.read_text(encoding="utf-8")).get("tool", {}).get("traindx", {})
    except (OSError, ValueError, AttributeError, RecursionError):
        return {}  # a broken project file is a thing to diagnose, not a reason to stop
    if not isinstance(table, dict):
        raise BadUsage("[tool.traindx] in pyproject.toml is no table")
    refused = sorted(_BY_PERSON.intersection(table))
    if refused:
        raise BadUsage(f"[tool.traindx] in pyproject.toml may not set {', '.join(refused)}: give it as an option or as "
                       f"TRAINDX_{refused[0].upper()}, because a project's file must not choose what is run or spent")
    unknown = sorted(set(table) - set(NAMES))
    if unknown:
        raise BadUsage(f"[tool.traindx] in pyproject.toml: there is no setting {unknown[0]!r}. There are: "
                       f"{', '.join(n for n in NAMES if n not in _BY_PERSON)}")
    return table


def _checked(name: str, value: Any, source: str) -> Any:
    if name in _CHOICES:
        if value not in _CHOICES[name]:
            raise BadUsage(f"{source}: {name} is {value!r}, expected one of {', '.join(filter(None, _CHOICES[name]))}")
        return value
    if name in _COUNTS:
        least, most = _COUNTS[name]
        return _number(name, value, source, int, least, most)
    if name in _AMOUNTS:
        return _number(name, value, source, float, 0.0, math.inf)
    if name == "token_prices":
        return _prices(value, source)
    if name == "web":
        return _truth(name, value, source)
    if not isinstance(value, str) or "\0" in value or len(value) > 4096:
        raise BadUsage(f"{source}: {name} is {str(value)[:80]!r}, expected a text")
    return value


def _number(name: str, value: Any, source: str, kind: type[int] | type[float], least: float, most: float) -> Any:
    try:
        number = kind(value) if not isinstance(value, bool) else None
    except (TypeError, ValueError, OverflowError):
        number = None
    whole = kind is float or number == value or isinstance(value, str)
    if number is None or not whole or not math.isfinite(number) or not least <= number <= most or \
            (kind is float and number <= 0):
        wanted = f"a number from {least:g} to {most:g}" if kind is int else "a number above 0"
        raise BadUsage(f"{source}: {name} is {str(value)[:80]!r}, expected {wanted}")
    return number


def _truth(name: str, value: Any, source: str) -> bool:
    known = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
    found = value if isinstance(value, bool) else known.get(str(value).lower())
    if found is None:
        raise BadUsage(f"{source}: {name} is {str(value)[:80]!r}, expected true or false")
    return found


def _prices(value: Any, source: str) -> str:
    if value == "":
        return ""
    try:
        numbers = [float(part) for part in str(value).split(",")]
    except ValueError:
        numbers = []
    if len(numbers) not in (2, 4) or not all(math.isfinite(n) and n >= 0 for n in numbers):
        raise BadUsage(f"{source}: token_prices is {str(value)[:80]!r}, expected dollars for a million tokens: "
                       "'input,output' or 'input,output,cache write,cache read'")
    return ",".join(f"{n:g}" for n in numbers)
