"""Constants of a project: module-level numbers, defaults of arguments, options and dataclass fields."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from traindx_tools.knowledge.tables import table
from traindx_tools.on_code.nodes import NOTHING, is_plain, literal
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.training import is_optimizer
from traindx_tools.on_code.values import Bag, Const, Table, Thing, Value

Plain = bool | int | float | str | None


def constants(project: Project) -> dict[str, Plain]:
    """Named constants by dotted name: "LR", "CFG.lr", "args.lr", "TrainConfig.lr", "main.lr" (a default of `main`).

    Where two files use the same name with different values, the name is prefixed by the file's stem.
    """
    found: dict[str, Plain] = {}
    for file in project.files:
        stem = file.path.rpartition("/")[2].removesuffix(".py")
        for name, value in _of_file(file.tree, project):
            if name in found and found[name] != value:
                name = f"{stem}.{name}"
            found[name] = value
    for event in project.calls("parse_args", "parse_known_args"):
        result = event.result.items[0] if isinstance(event.result, Bag) and event.result.items else event.result
        if isinstance(result, Table):
            for key, option in result.items.items():
                if isinstance(option, Const) and is_plain(option.value):
                    found.setdefault(f"args.{key}", option.value)
    return found


def _of_file(tree: ast.Module, project: Project) -> Iterator[tuple[str, Plain]]:
    for node in tree.body:
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                yield from _assigned(target, node.value)
        elif isinstance(node, ast.ClassDef):
            for inner in node.body:
                if isinstance(inner, (ast.Assign, ast.AnnAssign)) and inner.value is not None:
                    target = inner.targets[0] if isinstance(inner, ast.Assign) else inner.target
                    for name, value in _assigned(target, inner.value):
                        yield f"{node.name}.{name}", value
                elif isinstance(inner, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    yield from _defaults(
                        inner, f"{node.name}." if inner.name == "__init__" else f"{node.name}.{inner.name}."
                    )
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from _defaults(node, f"{node.name}.")


def _defaults(node: ast.FunctionDef | ast.AsyncFunctionDef, prefix: str) -> Iterator[tuple[str, Plain]]:
    spec = node.args
    positional = [*spec.posonlyargs, *spec.args]
    pairs = [
        *zip(positional[len(positional) - len(spec.defaults) :], spec.defaults, strict=False),
        *zip(spec.kwonlyargs, spec.kw_defaults, strict=False),
    ]
    for arg, default in pairs:
        value = literal(default) if default is not None else NOTHING
        if value is not NOTHING and value is not None:
            yield prefix + arg.arg, value  # type: ignore[misc]


def _assigned(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, Plain]]:
    if isinstance(target, (ast.Tuple, ast.List)) and isinstance(value, (ast.Tuple, ast.List)):
        for part, item in zip(target.elts, value.elts, strict=False):
            yield from _assigned(part, item)
        return
    if not isinstance(target, ast.Name):
        return
    if isinstance(value, ast.Dict):
        for key, item in zip(value.keys, value.values, strict=False):
            if isinstance(key, ast.Constant):
                for name, plain in _assigned(ast.Name(str(key.value)), item):
                    yield f"{target.id}.{name}", plain
        return
    if isinstance(value, ast.Call) and ast.unparse(value.func).endswith("field"):
        value = next((k.value for k in value.keywords if k.arg == "default"), value)
    known = literal(value)
    if known is not NOTHING:
        yield target.id, known  # type: ignore[misc]


_OPTIMIZER: Mapping[str, str] = table("settings.toml")["optimizer"]
_TRAINING_ARGUMENTS: Mapping[str, str] = table("settings.toml")["training_arguments"]


def settings(project: Project) -> dict[str, Plain]:
    """What the run is configured to, by meaning: learning_rate, batch_size, epochs, seed, momentum, weight_decay ...

    Taken from where the values are used (the optimizer's call, the loader's, the loop's), so their names do not matter.
    The first use in the text wins; a value that is not fixed by the program (an option) is its default.
    """
    found: dict[str, Plain] = {}
    for event in project.events:
        if event.kind != "call":
            continue
        made = event.result
        if isinstance(made, Thing) and is_optimizer(made) and event.name == made.type:
            _take(found, {**({"lr": made.args[1]} if len(made.args) > 1 else {}), **made.kwargs}, _OPTIMIZER)
        elif isinstance(made, Thing) and made.short == "DataLoader":
            size = made.argument(1, "batch_size")
            _take(
                found,
                {"batch_size": size, "num_workers": made.kwargs.get("num_workers")},
                {"batch_size": "batch_size", "num_workers": "num_workers"},
            )
        elif isinstance(made, Thing) and made.short.endswith(("TrainingArguments", "Config", "Trainer")):
            _take(found, made.kwargs, _TRAINING_ARGUMENTS)
        elif event.method in ("manual_seed", "set_seed", "seed_everything") and event.args:
            _take(found, {"seed": event.args[0]}, {"seed": "seed"})
    for loop in project.training_loops:
        if loop.block.count is not None:
            inner = any(
                b.kind == "loop" and b is not loop.block and b in p.path for p in loop.backwards for b in p.path
            )
            _take(found, {"n": loop.block.count}, {"n": "epochs" if inner else "max_steps"})
    return found


def _take(found: dict[str, Plain], given: Mapping[str, Value | None], meaning: Mapping[str, str]) -> None:
    for name, value in given.items():
        if name in meaning and isinstance(value, Const) and is_plain(value.value) and value.value is not None:
            found.setdefault(meaning[name], value.value)
