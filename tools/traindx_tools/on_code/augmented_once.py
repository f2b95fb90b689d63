"""Random augmentation whose results are kept: drawn once, and the same in every epoch."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from traindx_tools.on_code.lookup import Lookup
from traindx_tools.on_code.random_draws import Random, drawn
from traindx_tools.on_code.source import below
from traindx_tools.on_code.splits import HELD, named
from traindx_tools.on_code.syntax import FunctionNode, Syntax, argument, last_name, names_in, parameters, written

_AUGMENTS = re.compile(r"aug|transform|jitter|flip|crop|cutout|distort|perturb|warp|^tfms?$|^tf$|(^|_)aug|[Rr]andom|"
                       r"rotat|elastic|specaug|mixup", re.IGNORECASE)  # fmt: skip
_WORDS = ("ug", "ransform", "itter", "lip", "rop", "utout", "istort", "erturb", "arp", "tf", "andom", "otat", "lastic")
_KEEPS = frozenset({"lru_cache", "cache", "memoize", "memoise", "cached"})
_SMALL = 512
"""Entries of a least-recently-used cache that a shuffled data set hardly ever finds again."""
_SOURCES = re.compile(r"load_dataset|Dataset\.from_|DatasetDict|load_from_disk")
_LOADERS = ("DataLoader", "TensorDataset", "StatefulDataLoader", "InMemoryDataset")
_CHOICE = re.compile(r"cache|preload|in_memory|precompute|offline|freeze|fixed", re.IGNORECASE)


@dataclass(frozen=True)
class Once:
    """An augmentation that runs once a sample: the call, what draws in it, where its result is kept."""

    code: Syntax
    call: ast.AST
    random: Random
    kept: str
    kind: str


@dataclass(frozen=True)
class _Applied:
    """A call that may augment: what draws in it, or the parameter of `__init__` that it is."""

    call: ast.Call
    random: Random | None
    parameter: str = ""
    flag: str = ""
    """The parameter of `__init__` that switches it on."""


def once(look: Lookup) -> Iterator[Once]:
    """Every augmentation of a project that is drawn once."""
    for code in look.codes:
        if not any(word in code.file.text for word in _WORDS):
            continue
        for owner in code.of(ast.ClassDef):
            methods = {m.name: m for m in owner.body if isinstance(m, ast.FunctionDef)}
            if "__getitem__" in methods:
                yield from _of_class(look, code, owner, methods)
        yield from _of_lists(look, code)
        if "datasets" in code.file.text and ".map(" in code.file.text:
            yield from _of_map(look, code)


def _of_class(look: Lookup, code: Syntax, owner: ast.ClassDef, methods: dict[str, ast.FunctionDef]) -> Iterator[Once]:
    fetch, init = methods["__getitem__"], methods.get("__init__")
    if not any(_AUGMENTS.search(last_name(c.func)) for c in below(owner) if isinstance(c, ast.Call)):
        return
    if init is not None:
        for body in _at_start(methods, init):
            for applied in _applied(look, code, body, init):
                kept = _kept(code, body, applied.call)
                if kept and kept in _read(fetch) and not list(_applied(look, code, fetch, init)):
                    where = f"{kept} by {owner.name}.{body.name}()"
                    yield from _certain(look, code, owner, init, applied, where, "stored")
    for body in methods.values():
        if body is not fetch and f"self.{body.name}" not in _read(fetch):
            continue
        for applied in _applied(look, code, body, init):
            keeper = _decorated(code, body) or _memory(code, body, applied.call)
            outside = body is not fetch and list(_applied(look, code, fetch, init))
            if keeper and not outside:
                yield from _certain(look, code, owner, init, applied, keeper, "cached")


def _at_start(methods: dict[str, ast.FunctionDef], init: ast.FunctionDef) -> list[ast.FunctionDef]:
    """`__init__` and the methods that only it calls."""
    read = {name: _read(method) for name, method in methods.items()}
    others = [n for n in methods if n not in ("__init__", "__getitem__")]
    only = [n for n in others if [m for m in methods if f"self.{n}" in read[m]] == ["__init__"]]
    return [init, *(methods[n] for n in only)]


def _applied(look: Lookup, code: Syntax, body: ast.FunctionDef, init: ast.FunctionDef | None) -> Iterator[_Applied]:
    """The calls of a method that augment, by a parameter of `__init__`, an attribute, a function or a library."""
    given = set(parameters(init)) - {"self"} if init is not None else set()
    for call in (n for n in below(body) if isinstance(n, ast.Call)):
        name = last_name(call.func)
        if not _AUGMENTS.search(name) or code.function(call) is not body:
            continue
        source = call.func
        if isinstance(source, ast.Attribute) and written(source.value) == "self":
            bound = [v for _, v in code.bindings(source)]
            if len(bound) > 1:
                continue
            value = bound[0] if bound else None
            value = value.values[0] if isinstance(value, ast.BoolOp) else value
            if isinstance(value, ast.Name) and value.id in given:
                yield _Applied(call, None, value.id)
                continue
            if isinstance(value, ast.IfExp) and isinstance(value.test, ast.Name) and value.test.id in given:
                random = drawn(look.codes, code, value.body)
                if random is not None:
                    yield _Applied(call, random, flag=value.test.id)
                continue
        elif isinstance(source, ast.Name) and source.id in given and body is init:
            yield _Applied(call, None, source.id)
            continue
        random = drawn(look.codes, code, source)
        if random is None and isinstance(source, ast.Attribute) and written(source.value) == "self":
            random = _own_method(look, code, body, name)
        if random is not None:
            yield _Applied(call, random)


def _own_method(look: Lookup, code: Syntax, body: ast.FunctionDef, name: str) -> Random | None:
    """A method of the class that draws: judged as a function of the file would be."""
    owner = code.owner(body)
    method = next((m for m in owner.body if isinstance(m, ast.FunctionDef) and m.name == name), None) if owner else None
    if method is None or "generator" in written(method) or "seed" in written(method):
        return None
    for call in (n for n in below(method) if isinstance(n, ast.Call)):
        if re.match(r"(numpy\.)?random\.\w|torch\.(rand|bernoulli|normal)", code.qualified(call.func)):
            return Random(f"{name} ({written(call)[:40]})", code.at(call))
        random = drawn(look.codes, code, call.func)
        if random is not None:
            return random
    return None


def _kept(code: Syntax, body: ast.FunctionDef, call: ast.Call) -> str:
    """The attribute of self in which the result of a call ends up: `self.samples`; "" where in none."""
    chosen = any(isinstance(a, ast.If) and _CHOICE.search(written(a.test)) for a in code.above(call))
    if chosen or _several(code, call):
        return ""
    carriers: set[str] = set()
    statements = [n for n in below(body) if isinstance(n, ast.stmt) and not isinstance(n, (ast.For, ast.If, ast.With,
                  ast.While, *FunctionNode, ast.Try))]  # fmt: skip
    for statement in sorted(statements, key=lambda s: s.lineno):
        reads = any(n is call for n in below(statement)) or bool(carriers & names_in(statement))
        if not reads:
            continue
        for target in _targets(statement):
            head = target.value if isinstance(target, ast.Subscript) else target
            if isinstance(head, ast.Attribute) and written(head.value) == "self":
                return written(head)
            for part in head.elts if isinstance(head, ast.Tuple) else [head]:
                if isinstance(part, ast.Name):
                    carriers.add(part.id)
                elif isinstance(part, ast.Attribute) and written(part.value) == "self":
                    return written(part)
    return ""


def _targets(statement: ast.stmt) -> list[ast.expr]:
    """What a statement writes to: its targets, or what it appends to."""
    if isinstance(statement, ast.Assign):
        return statement.targets
    if isinstance(statement, (ast.AnnAssign, ast.AugAssign)):
        return [statement.target]
    call = statement.value if isinstance(statement, ast.Expr) else None
    adds = isinstance(call, ast.Call) and last_name(call.func) in ("append", "extend", "insert")
    return [call.func.value] if adds and isinstance(call.func, ast.Attribute) else []  # type: ignore[union-attr]


def _several(code: Syntax, call: ast.AST) -> bool:
    """Whether a sample is augmented several times on purpose: a loop over copies inside the loop over samples."""
    loops: list[tuple[ast.expr, ast.expr]] = []
    for up in code.above(call):
        if isinstance(up, FunctionNode):
            break
        if isinstance(up, (ast.For, ast.comprehension)):
            loops.append((up.target, up.iter))
        elif isinstance(up, (ast.ListComp, ast.GeneratorExp, ast.SetComp)):
            loops += [(g.target, g.iter) for g in up.generators]
    counted = [i for _, i in loops if isinstance(i, ast.Call) and last_name(i.func) == "range"]
    return len(loops) > 1 and any("len(" not in written(i) for i in counted)


def _read(fetch: ast.FunctionDef) -> set[str]:
    """The attributes that a method names."""
    return {written(n) for n in below(fetch) if isinstance(n, ast.Attribute)}


def _decorated(code: Syntax, body: ast.FunctionDef) -> str:
    """The cache around a method, if it is large enough to keep a data set."""
    for decorator in body.decorator_list:
        made = decorator.func if isinstance(decorator, ast.Call) else decorator
        name = last_name(made)
        if name not in _KEEPS:
            continue
        size = argument(decorator, 0, "maxsize") if isinstance(decorator, ast.Call) else None
        number = code.number(size) if size is not None else (None if name == "cache" else 128.0)
        unbounded = name != "lru_cache" or (isinstance(size, ast.Constant) and size.value is None)
        if unbounded or (number is not None and number >= _SMALL):
            return f"the {name} around {body.name}()"
    return ""


def _memory(code: Syntax, body: ast.FunctionDef, call: ast.Call) -> str:
    """A dictionary or list on self that a fetched sample is looked up in first, and put into augmented."""
    kept = _kept(code, body, call)
    if not kept:
        return ""
    tests = [n for n in below(body) if isinstance(n, ast.If)
             and kept in {written(x) for x in below(n.test) if isinstance(x, ast.Attribute)}]  # fmt: skip
    for test in tests:
        inside = any(a is test for a in code.above(call))
        leaves = any(isinstance(s, ast.Return) for s in test.body) and call.lineno > test.lineno
        if inside or leaves:
            return f"{kept} in {body.name}()"
    return ""


def _certain(
    look: Lookup,
    code: Syntax,
    owner: ast.ClassDef,
    init: ast.FunctionDef | None,
    applied: _Applied,
    kept: str,
    kind: str,
) -> Iterator[Once]:
    """The augmentation, where a data set for training is made with it once."""
    makers = [(c, k) for c, k in look.calls.get(owner.name, []) if len(look.classes.get(owner.name, [])) == 1]
    spec = [n for n in parameters(init) if n != "self"] if init is not None else []
    for other, made in makers:
        up = other.parent(made)
        target = last_name(up.targets[0]) if isinstance(up, ast.Assign) else ""
        if named(target) == HELD or _in_epochs(other, made):
            continue
        random = applied.random
        if applied.flag and init is not None:
            on = argument(made, spec.index(applied.flag), applied.flag) or parameters(init)[applied.flag]
            if not (isinstance(on, ast.Constant) and on.value is True):
                continue
        if random is None:
            given = argument(made, spec.index(applied.parameter), applied.parameter)
            random = drawn(look.codes, other, given) if given is not None else None
        if random is not None:
            yield Once(code, applied.call, random, kept, kind)
            return


def _in_epochs(code: Syntax, node: ast.AST) -> bool:
    return any(re.search(r"epoch", written(getattr(x, "target", None)) + written(getattr(x, "iter", None)))
               for x in code.loops(node))  # fmt: skip


def _of_lists(look: Lookup, code: Syntax) -> Iterator[Once]:
    """`train = [(augment(x), y) for x, y in raw]` outside every loop, which a loader or an epoch goes through."""
    for made in code.of(ast.ListComp):
        statement = code.statement(made)
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1 or code.loops(made):
            continue
        target = statement.targets[0]
        if not isinstance(target, ast.Name) or named(target.id) == HELD or _several(code, made.elt):
            continue
        for call in (n for n in below(made.elt) if isinstance(n, ast.Call)):
            if not _AUGMENTS.search(last_name(call.func)):
                continue
            random = drawn(look.codes, code, call.func)
            if random is not None and _trained_on(code, statement, target):
                yield Once(code, call, random, target.id, "list")
                break


def _trained_on(code: Syntax, statement: ast.stmt, target: ast.Name) -> bool:
    """Whether a list goes to a loader or is gone through again in each epoch."""
    scope = code.scope(statement)
    for call in code.calls(*_LOADERS):
        data = argument(call, 0, "dataset")
        if data is None or code.scope(call) is not scope or _in_epochs(code, call):
            continue
        if target.id in names_in(data):
            return len(code.bindings(target)) == 1
    return any(code.scope(loop) is scope and target.id in names_in(loop.iter) and _in_epochs(code, loop)
               for loop in code.of(ast.For))  # fmt: skip


def _of_map(look: Lookup, code: Syntax) -> Iterator[Once]:
    """`dataset.map(augment)` of Hugging Face: the results are written to a cache file."""
    text = code.file.text
    if not _SOURCES.search(text) or re.search(r"streaming\s*=\s*True|IterableDataset|to_iterable", text):
        return
    for call in code.calls("map"):
        given = argument(call, 0, "function")
        owner = call.func.value if isinstance(call.func, ast.Attribute) else None
        if given is None or owner is None or not isinstance(given, (ast.Name, ast.Attribute, ast.Lambda)):
            continue
        part = written(owner) + " " + written(getattr(code.parent(call), "targets", [None])[0])
        said = {named(w) for w in re.findall(r"\w+", part)}
        if said == {HELD, None} or said == {HELD} or not (isinstance(owner, (ast.Name, ast.Attribute, ast.Subscript))):
            continue
        random = _inside(look.codes, code, given)
        if random is not None:
            yield Once(code, call, random, "the cache of dataset.map()", "map")


def _inside(codes: Sequence[Syntax], code: Syntax, given: ast.expr) -> Random | None:
    """What augments in a function that is mapped: its own draws where it is named so, or the transforms it calls."""
    if _AUGMENTS.search(last_name(given)):
        random = drawn(codes, code, given)
        if random is not None:
            return random
    body: ast.AST | None = given if isinstance(given, ast.Lambda) else next(
        (f for f in code.of(ast.FunctionDef) if isinstance(given, ast.Name) and f.name == given.id), None)  # fmt: skip
    for call in (n for n in below(body) if isinstance(n, ast.Call)) if body is not None else ():
        if _AUGMENTS.search(last_name(call.func)):
            random = drawn(codes, code, call.func)
            if random is not None:
                return random
    return None
