"""What a rule says of itself, and how the rules of a room are found.

One rule is one file: a module with a docstring (its page), a `RULE` and a function of one of `KINDS`. A room (a package
such as `traindx_tools.on_logs.curves`) discovers its rules by importing the modules in it: adding a rule touches one
file.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import pkgutil
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from traindx_tools.finding import Bearing, Finding, Location, Patch, Severity, Value
from traindx_tools.short import without_dumps


@dataclass(frozen=True)
class Threshold:
    """A number that a rule compares with: its unit and who says so."""

    value: float | str
    unit: str
    source: str


@dataclass(frozen=True)
class Rule:
    """What stands on a rule's page beside its docstring.

    `sees`: what it looks at. `matters`: why a person should care. `alike`: what else looks the same and is not this.
    `confirm`: commands or observations that settle it.
    """

    id: str
    name: str
    title: str
    severity: Severity
    sees: str
    matters: str
    alike: tuple[str, ...]
    confirm: tuple[str, ...]
    thresholds: Mapping[str, Threshold] = field(default_factory=dict)

    def finding(
        self,
        statement: str,
        where: Location,
        source: str,
        *,
        bearing: Bearing,
        severity: Severity | None = None,
        title: str | None = None,
        measured: Mapping[str, Value] | None = None,
        patch: Iterable[Patch] = (),
    ) -> Finding:
        """A finding of this rule, with the rule's title and severity unless given. What a message quotes of arrays that
        a program printed is told by dtype and shape."""
        return Finding(
            rule=self.id,
            title=title or self.title,
            severity=severity or self.severity,
            bearing=bearing,
            statement=without_dumps(statement),
            where=where,
            source=source,
            measured=dict(measured or {}),
            patch=tuple(patch),
        )


@dataclass(frozen=True)
class RuleModule:
    """A rule together with its check function and its prose. `asks`: the kind of the check, one of `KINDS`."""

    rule: Rule
    check: Callable[..., Iterable[Finding]]
    doc: str
    module: str
    asks: str = "check"


KINDS = ("check", "check_files", "check_code", "check_run", "check_beside")
"""How the function of a rule is called, by what it is given: the one thing that its room looks at; several files that
lie beside each other; a file and the programs that may load it; several files and the programs;
the paths of all files of a run, whatever they hold."""


ROOMS = (
    "traindx_tools.on_logs.curves",
    "traindx_tools.on_logs.tracebacks",
    "traindx_tools.on_logs.events.rules",
    "traindx_tools.code_rules.torch_rules",
    "traindx_tools.code_rules.jax_rules",
    "traindx_tools.invariants",
    "traindx_tools.on_torch.rules",
    "traindx_tools.on_jax.rules",
    "traindx_tools.on_data.rules",
    "traindx_tools.on_weights.rules",
    "traindx_tools.on_ranks.rules",
    "traindx_tools.on_settings.rules",
    "traindx_tools.on_variables.rules",
)
"""Packages that hold one rule a module."""


VERDICTS = ("traindx_tools.experiments.rules", "traindx_tools.experiments.isolating.rules",
            "traindx_tools.experiments.replaying.rules", "traindx_tools.experiments.screening.rules",
            "traindx_tools.experiments.planting.rules")
"""Packages of rules that say what experiments showed."""


_ID = re.compile(r"[a-z]\d{3}")
"""How the file of a rule begins."""


@cache
def rules_in(package: str) -> tuple[RuleModule, ...]:
    """Every rule of a room, ordered by id. Modules without a `RULE` are shared code and skipped; an invariant has
    `RULES`: all the ids under which it speaks (and `PROSE` where each has a text of its own).

    Raises ValueError when two modules claim the same id.
    """
    found: dict[str, RuleModule] = {}
    for info in pkgutil.iter_modules(importlib.import_module(package).__path__):
        module: Any = importlib.import_module(f"{package}.{info.name}")
        rules = getattr(module, "RULES", None) or [r for r in [getattr(module, "RULE", None)] if r is not None]
        for rule in rules:
            if rule.id in found:
                raise ValueError(f"rule {rule.id} is claimed by {found[rule.id].module} and {module.__name__}")
            prose = getattr(module, "PROSE", {}).get(rule.id) or inspect.getdoc(module) or ""
            asks = next(k for k in KINDS if hasattr(module, k))
            found[rule.id] = RuleModule(rule, getattr(module, asks), prose, module.__name__, asks)
    return tuple(found[k] for k in sorted(found))


def all_rules() -> dict[str, RuleModule]:
    """Every rule of every room by id."""
    return {m.rule.id: m for room in ROOMS for m in rules_in(room)}


def rule_names() -> dict[str, str]:
    """Every rule that has a page, by id, with the words of its name: read from names of files, no rule is imported.

    For the completion of a shell, which cannot wait for all rules to be read.
    """
    from traindx_tools.knowledge.tables import every_page

    found = {"C001": "suppression"}
    for room in (*ROOMS, *VERDICTS):
        spec = importlib.util.find_spec(room)
        for info in pkgutil.iter_modules(spec.submodule_search_locations if spec is not None else None):
            id_, _, name = info.name.partition("_")
            if _ID.fullmatch(id_):
                found[id_.upper()] = name.replace("_", " ")
    found |= {id_: str(page["title"]) for id_, page in every_page()}
    return dict(sorted(found.items()))


def title_of(id_: str) -> str:
    """What a rule is called; "" for one that has no page. No rule but this one is imported."""
    from traindx_tools.knowledge.tables import every_page

    for room in (*ROOMS, *VERDICTS):
        spec = importlib.util.find_spec(room)
        for info in pkgutil.iter_modules(spec.submodule_search_locations if spec is not None else None):
            if info.name.upper().startswith(f"{id_.upper()}_"):
                module: Any = importlib.import_module(f"{room}.{info.name}")
                rules = getattr(module, "RULES", None) or [getattr(module, "RULE", None)]
                return next((str(r.title) for r in rules if r is not None and r.id == id_.upper()), "")
    return next((str(page["title"]) for name, page in every_page() if name == id_.upper()), "")


def explained_rules() -> dict[str, RuleModule]:
    """Every rule that has a page: those of the rooms, and those with which an instrument speaks of itself."""
    own = importlib.import_module("traindx_tools.code_reports.suppression")
    told = RuleModule(own.RULE, own.heeded, inspect.getdoc(own) or "", own.__name__)
    verdicts = {m.rule.id: m for room in VERDICTS for m in rules_in(room)}
    return {told.rule.id: told, **all_rules(), **verdicts}
