"""Which options a program's command line has, read from its source: argparse, click, typer, fire, tyro, HF, Lightning.

Read as text: nothing is imported or run.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

DATACLASS_READERS = ("tyro.cli", "HfArgumentParser", "simple_parsing.parse", "ArgumentParser.add_arguments",
                     "draccus.wrap", "pyrallis.wrap", "chz.entrypoint", "CliApp.run", "jsonargparse.CLI", "auto_cli")
"""Calls by which the fields of a dataclass become options."""
FUNCTION_READERS = ("fire.Fire", "Fire", "typer.run", "jsonargparse.CLI", "tyro.cli")
"""Calls by which the parameters of a function become options."""


@dataclass(frozen=True)
class OptionOfProgram:
    """One option as it is typed (`--learning-rate`), and how it takes its value."""

    flag: str
    keys: frozenset[str]
    """Names under which it may be meant, normalised."""
    kind: str = "value"
    """"value", "values" (several words), "on" (a flag that sets True), "off" (sets False), "both" (--x and --no-x)."""
    aliases: tuple[str, ...] = ()
    default: object = None
    """What it is without being given, where that is a literal; else None."""
    choices: tuple[object, ...] = ()


def normalised(name: str) -> str:
    """`--learning-rate` and `learning_rate` are one."""
    return name.lstrip("-").replace("-", "_")


def options_of(tree: ast.Module) -> Iterator[OptionOfProgram]:
    """The options that calls in this file declare."""
    classes = {n.name: n for n in ast.walk(tree) if isinstance(n, ast.ClassDef)}
    functions = {n.name: n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        last = called.rpartition(".")[2]
        if last in ("add_argument", "option"):
            yield from _declared(node, click=last == "option")
        elif _is(called, FUNCTION_READERS) and node.args and isinstance(node.args[0], ast.Name) and (
                node.args[0].id in functions):
            for name, default in _parameters(functions[node.args[0].id]):
                flag = name if called.endswith("Fire") else name.replace("_", "-") if "typer" in called else name
                yield OptionOfProgram(f"--{flag}", frozenset({name}), default=_value(default))
        elif _is(called, DATACLASS_READERS):
            dashes = called.startswith("tyro")
            for given in ast.walk(node):
                if isinstance(given, ast.Name) and given.id in classes:
                    yield from _fields(classes[given.id], classes, "", dashes)


def uses(tree: ast.Module, names: Iterable[str]) -> bool:
    """Whether the file calls, or decorates with, one of these."""
    told = tuple(names)
    return any(_is(ast.unparse(n), told) for n in ast.walk(tree) if isinstance(n, (ast.Attribute, ast.Name)))


def _is(called: str, names: tuple[str, ...]) -> bool:
    return any(called == n or called.endswith("." + n) for n in names)


def _declared(call: ast.Call, click: bool) -> Iterator[OptionOfProgram]:
    names = [a.value for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
    flags = [n for n in names if n.startswith("-")]
    if not flags:
        return
    told = {k.arg: k.value for k in call.keywords if k.arg}
    long = [f for f in flags if f.startswith("--")] or flags
    kind = "value"
    action = _text(told.get("action"))
    if action in ("store_true", "store_false"):
        kind = "on" if action == "store_true" else "off"
    elif (action or "").endswith("BooleanOptionalAction"):
        kind = "both"
    elif action not in (None, "store"):
        return
    elif "nargs" in told and _text(told["nargs"]) != "?":
        kind = "values"
    if click:
        if "/" in long[0]:
            flags = [f.split("/")[0].strip() for f in flags]
            long, kind = [long[0].split("/")[0].strip()], "both"
        elif _text(told.get("is_flag")) == "True":
            kind = "on"
    dest = _text(told.get("dest"))
    others = [n for n in names if not n.startswith("-")] if click else []
    keys = {normalised(f) for f in [*flags, *others, *([dest] if dest else [])]}
    choices = _value(told.get("choices"))
    yield OptionOfProgram(long[0], frozenset(keys), kind, tuple(flags), _value(told.get("default")),
                          tuple(choices) if isinstance(choices, (list, tuple)) else ())


def _fields(kind: ast.ClassDef, classes: dict[str, ast.ClassDef], before: str, dashes: bool,
            depth: int = 0) -> Iterator[OptionOfProgram]:
    for base in kind.bases:
        if isinstance(base, ast.Name) and base.id in classes and depth < 6:
            yield from _fields(classes[base.id], classes, before, dashes, depth + 1)
    for line in kind.body:
        if not isinstance(line, ast.AnnAssign) or not isinstance(line.target, ast.Name):
            continue
        name = before + line.target.id
        inner = line.annotation
        if isinstance(inner, ast.Name) and inner.id in classes and depth < 6:
            yield from _fields(classes[inner.id], classes, f"{name}.", dashes, depth + 1)
            continue
        yield OptionOfProgram("--" + (name.replace("_", "-") if dashes else name), frozenset({name}),
                              default=_value(line.value))


def _parameters(function: ast.FunctionDef) -> Iterator[tuple[str, ast.expr | None]]:
    """Each with its default."""
    given = function.args
    placed = (*given.posonlyargs, *given.args)
    yield from zip((a.arg for a in placed), (*[None] * (len(placed) - len(given.defaults)), *given.defaults),
                   strict=True)
    yield from zip((a.arg for a in given.kwonlyargs), given.kw_defaults, strict=True)


def _value(node: ast.expr | None) -> object:
    """Of a literal its value, else None."""
    try:
        return None if node is None else ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None


def _text(node: ast.expr | None) -> str | None:
    if node is None:
        return None
    return str(node.value) if isinstance(node, ast.Constant) else ast.unparse(node)
