"""Between which whole numbers the ids and labels of an array lie, followed back to where they are made.

Drawn numbers, listed choices, remainders, numberings (`{name: i + 1 for i, name in enumerate(names)}`), shifts and
casts; through names, results of functions, arguments of all callers (also of `jit(f)`, `vmap(f)`, `value_and_grad(f)`
and of a module's `apply`) and entries of configuration files. A number may be relative to the length of something:
`len(words) + 2`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.on_code.lookup import Lookup, Where, returned
from traindx_tools.on_code.number_ranges import Number, Range, union
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import FunctionNode, Syntax, argument, last_name, parameters, written
from traindx_tools.on_code.written_options import entry

_DEEP = 16
_SAME = frozenset({
    "astype", "asarray", "array", "int", "int32", "int64", "uint8", "reshape", "ravel", "flatten", "squeeze", "copy",
    "device_put", "tolist", "expand_dims", "broadcast_to", "repeat", "tile", "permutation", "sorted", "list", "tuple",
    "ascontiguousarray", "roll", "flip", "transpose", "sort", "item", "view", "long", "shuffle", "to_numpy",
})  # fmt: skip
_WRAPS = frozenset({"jit", "vmap", "pmap", "grad", "value_and_grad", "filter_jit", "filter_vmap", "filter_grad",
                    "filter_value_and_grad", "partial", "checkpoint", "remat", "named_call", "shard_map"})  # fmt: skip
_MODULES = ("Module", "nn.Module", "eqx.Module", "nnx.Module", "linen.Module", "hk.Module", "flax.linen.Module")


class Ranges:
    """The ranges of a project's arrays; each node is followed once."""

    def __init__(self, look: Lookup) -> None:
        self._look = look
        self._known: dict[int, Range | None] = {}

    def of(self, code: Syntax, node: ast.expr | None, left: int = _DEEP) -> Range | None:
        """The range of an expression; None where it is not known."""
        if node is None or left <= 0:
            return None
        if id(node) not in self._known:
            self._known[id(node)] = None  # a value that is made from itself
            self._known[id(node)] = self._of(code, node, left)
        return self._known[id(node)]

    def number(self, code: Syntax, node: ast.expr | None, left: int = _DEEP) -> Number | None:
        """A size: a number, an entry of a configuration, the length of something, shifted."""
        if node is None or left <= 0:
            return None
        known = self._look.number(code, node)
        if known is not None:
            return Number(int(known)) if known.is_integer() else None  # infinity is none
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
            one, two = self.number(code, node.left, left - 1), self.number(code, node.right, left - 1)
            if one is None or two is None or (one.of and two.of) or (two.of and isinstance(node.op, ast.Sub)):
                return None
            sign = 1 if isinstance(node.op, ast.Add) else -1
            return Number(one.value + sign * two.value, one.of or two.of, one.name or two.name)
        if isinstance(node, ast.Call) and last_name(node.func) == "len" and node.args:
            return Number(0, self._things(code, node.args[0]), written(node.args[0])[:40])
        if isinstance(node, (ast.Subscript, ast.Attribute)):
            given = entry(self._look, node)
            if isinstance(given, int) and not isinstance(given, bool):
                return Number(given)
            held = self._entry_of(code, node)
            if held is not None:
                return self.number(*held, left - 1)
        if isinstance(node, ast.Name) and not code.bindings(node):
            passed = {self.number(c, v, left - 1) for c, v in self._passed(code, node)}
            if len(passed) == 1:
                return next(iter(passed))
        step = self._look.one_step(code, node)
        return None if step is None or step[1] is node else self.number(*step, left - 1)

    def _entry_of(self, code: Syntax, node: ast.Subscript | ast.Attribute) -> Where | None:
        """`HP["width"]` of `HP = dict(width=3)`, `CFG.width` of `CFG = Config(width=3)`."""
        key = node.attr if isinstance(node, ast.Attribute) else (
            str(node.slice.value) if isinstance(node.slice, ast.Constant) else "")  # fmt: skip
        if isinstance(node, ast.Attribute) and written(node.value) == "self":
            return self._field(code, node)
        of, made = self._look.origin(code, node.value)
        if isinstance(made, ast.Dict):
            return next(((of, v) for k, v in zip(made.keys, made.values, strict=True)
                         if isinstance(k, ast.Constant) and k.value == key), None)  # fmt: skip
        if isinstance(made, ast.Call):
            return next(((of, k.value) for k in made.keywords if k.arg == key), None)
        return None

    def _field(self, code: Syntax, node: ast.Attribute) -> Where | None:
        """What the only construction of a dataclass or flax module gives a field: `self.rows` of `Tagger(rows=n)`."""
        owner = code.owner(node)
        fields = [s.target.id for s in owner.body if isinstance(s, ast.AnnAssign)
                  and isinstance(s.target, ast.Name)] if owner is not None else []  # fmt: skip
        if owner is None or node.attr not in fields:
            return None
        given = [(c, v) for c in self._look.codes for call in c.calls(owner.name)
                 if (v := argument(call, fields.index(node.attr), node.attr)) is not None]  # fmt: skip
        return given[0] if len(given) == 1 else None

    def _things(self, code: Syntax, node: ast.expr, left: int = 6) -> str:
        """A name for the things that are counted, the same wherever they are meant."""
        of, made = self._look.origin(code, node)
        if isinstance(made, ast.DictComp):  # as many entries as what is numbered
            source = made.generators[0].iter
            inner = source.args[0] if isinstance(source, ast.Call) and last_name(
                source.func) == "enumerate" and source.args else source  # fmt: skip
            if isinstance(inner, (ast.Name, ast.Attribute)) and left > 0:
                return self._things(of, inner, left - 1)
        if isinstance(made, ast.Name):
            holder = next((f for f in of.above(made) if isinstance(f, FunctionNode) and made.id in parameters(f)), None)
            return f"{of.file.path}|{getattr(holder, 'lineno', 0)}|{made.id}"
        if isinstance(made, ast.Attribute):
            owner = of.owner(made) if written(made.value) == "self" else None
            holding = owner.name if owner is not None else str(getattr(of.scope(made), "lineno", 0))
            return f"{of.file.path}|{holding}|{written(made)}"
        return f"{of.file.path}|{getattr(made, 'lineno', 0)}|{getattr(made, 'col_offset', 0)}"

    # --- ranges

    def _of(self, code: Syntax, node: ast.expr, left: int) -> Range | None:
        if isinstance(node, ast.Constant):
            known = node.value if isinstance(node.value, int) and not isinstance(node.value, bool) else None
            return None if known is None else Range(known, Number(known), code, node)
        if isinstance(node, ast.BinOp):
            return self._of_arithmetic(code, node, left)
        if isinstance(node, (ast.List, ast.Tuple)):
            return union([self.of(code, e, left - 1) for e in node.elts], whole=True)
        if isinstance(node, ast.IfExp):
            return union([self.of(code, node.body, left - 1), self.of(code, node.orelse, left - 1)])
        if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
            return self.of(code, node.elt, left - 1)
        if isinstance(node, ast.Call):
            return self._of_call(code, node, left)
        if isinstance(node, ast.Subscript):
            return self._of_item(code, node, left)
        if isinstance(node, (ast.Name, ast.Attribute)):
            return self._of_name(code, node, left)
        return None

    def _of_arithmetic(self, code: Syntax, node: ast.BinOp, left: int) -> Range | None:
        other = self.number(code, node.right, 6)
        if isinstance(node.op, ast.Mod):
            return None if other is None else Range(0, other.shifted(-1), code, node)
        inner = self.of(code, node.left, left - 1)
        if isinstance(node.op, ast.Add) and inner is None:
            inner, other = self.of(code, node.right, left - 1), self.number(code, node.left, 6)
        if inner is None or other is None or other.of:
            return None
        by = other.value
        if isinstance(node.op, (ast.Add, ast.Sub)):
            by = by if isinstance(node.op, ast.Add) else -by
            return Range(inner.low + by, inner.high.shifted(by), inner.code, inner.made)
        if isinstance(node.op, ast.FloorDiv) and by > 0 and not inner.high.of:
            return Range(inner.low // by, Number(inner.high.value // by), inner.code, inner.made)
        if isinstance(node.op, ast.Mult) and by > 0 and not inner.high.of:
            return Range(inner.low * by, Number(inner.high.value * by), inner.code, inner.made)
        return None

    def _of_call(self, code: Syntax, call: ast.Call, left: int) -> Range | None:
        name = last_name(call.func)
        drawn = self._drawn(code, call, name)
        if drawn is not None:
            return drawn
        if name == "choice":
            first = argument(call, 1 if code.qualified(call.func).startswith("jax.") else 0, "a")
            count = self.number(code, first, 6)
            if count is not None:
                return Range(0, count.shifted(-1), code, call)
            return self.of(code, first, left - 1)
        if name in ("range", "arange") and call.args:
            numbers = [self.number(code, a, 6) for a in call.args[:2]]
            low = 0 if len(numbers) == 1 else numbers[0].value if numbers[0] is not None and not numbers[0].of else None
            top = numbers[-1]
            return None if low is None or top is None else Range(low, top.shifted(-1), code, call)
        if name in ("digitize", "searchsorted"):
            return None
        if name in ("concatenate", "stack", "hstack", "vstack", "where"):
            parts = call.args[1:3] if name == "where" else getattr(call.args[0], "elts", ()) if call.args else ()
            compared = name == "where" and call.args and any(
                isinstance(n, ast.Compare) for n in below(code.origin(call.args[0])))  # fmt: skip
            return None if compared else union([self.of(code, p, left - 1) for p in parts])
        if name == "get" and isinstance(call.func, ast.Attribute):
            return self._numbered(code, call.func.value)
        if name in _SAME:
            plain = bool(code.qualified(call.func)) or isinstance(call.func, ast.Name)
            own = (call.args[0] if call.args else None) if plain else getattr(call.func, "value", None)
            return self.of(code, own, left - 1)
        return self._result(code, call, None, left)

    def _drawn(self, code: Syntax, call: ast.Call, name: str) -> Range | None:
        """Numbers of a generator: the upper end is not among them, but for random.randint and endpoint=True."""
        if name not in ("integers", "randint", "randrange", "random_integers"):
            return None
        full = code.qualified(call.func)
        first, second = argument(call, 0, "low"), argument(call, 1, "high")
        if full.startswith("jax."):
            first, second = argument(call, 2, "minval"), argument(call, 3, "maxval")
        if isinstance(second, (ast.Tuple, ast.List)):  # torch.randint(high, size)
            second = None
        if second is None and not full.startswith("jax."):
            first, second = None, first
        low = Number(0) if first is None else self.number(code, first, 6)
        high = self.number(code, second, 6)
        closed = full in ("random.randint", "numpy.random.random_integers") or written(
            argument(call, 99, "endpoint")) == "True"  # fmt: skip
        if low is None or high is None or low.of:
            return None
        return Range(low.value, high if closed else high.shifted(-1), code, call)

    def _of_item(self, code: Syntax, node: ast.Subscript, left: int) -> Range | None:
        if any(isinstance(n, ast.Compare) or isinstance(getattr(n, "op", None), ast.Invert) for n in below(node.slice)):
            return None  # a mask may leave numbers out
        place = node.slice.value if isinstance(node.slice, ast.Constant) else None
        if isinstance(place, int):
            there, whole = self._look.origin(code, node.value)
            if isinstance(whole, ast.Call):
                inner = self._result(there, whole, place, left)
                if inner is not None:
                    return inner
            if isinstance(whole, (ast.Tuple, ast.List)) and -len(whole.elts) <= place < len(whole.elts):
                return self.of(there, whole.elts[place], left - 1)
        if isinstance(place, str):
            held = self._entry_of(code, node)
            return self.of(*held, left - 1) if held is not None else None
        return self._numbered(code, node.value) or self.of(code, node.value, left - 1)

    def _numbered(self, code: Syntax, table: ast.expr) -> Range | None:
        """The numbers that a dictionary gives: `{w: i + 2 for i, w in enumerate(words)}`."""
        of, made = self._look.origin(code, table)
        if isinstance(made, ast.Dict) and made.values:
            return union([self.of(of, v, 3) for v in made.values if v is not None], whole=True)
        if not isinstance(made, ast.DictComp) or len(made.generators) != 1:
            return None
        source, target = made.generators[0].iter, made.generators[0].target
        if not (isinstance(source, ast.Call) and last_name(source.func) == "enumerate" and source.args
                and isinstance(target, ast.Tuple) and isinstance(target.elts[0], ast.Name)):  # fmt: skip
            return None
        start, by, index = self.number(of, argument(source, 1, "start"), 4) or Number(0), 0, made.value
        if isinstance(index, ast.BinOp) and isinstance(index.op, (ast.Add, ast.Sub)):
            added = self.number(of, index.right, 4)
            by = (added.value if isinstance(index.op, ast.Add) else -added.value) if added is not None else 0
            index = index.left if added is not None and not added.of else made.key
        if not isinstance(index, ast.Name) or index.id != target.elts[0].id or start.of:
            return None
        items = self._look.items(of, source.args[0])
        count = Number(len(items)) if items is not None else Number(
            0, self._things(of, source.args[0]), written(source.args[0])[:40])  # fmt: skip
        low = start.value + by
        return Range(low, count.shifted(low - 1), of, made)

    def _of_name(self, code: Syntax, node: ast.Name | ast.Attribute, left: int) -> Range | None:
        stored = self._stored(code, node, left)
        if stored is not None:
            return stored
        made = code.assigned(node)
        if made is not None:
            return self.of(code, made, left - 1)
        bound = code.bindings(node)
        if bound:
            return None if isinstance(node, ast.Name) and len(bound) > 4 else union(
                [self.of(code, v, left - 1) for _, v in bound])  # fmt: skip
        if isinstance(node, ast.Name):
            counted = self._counted(code, node, left)
            if counted is not None:
                return counted
            given = [self.of(c, v, left - 1) for c, v in self._passed(code, node)]
            if given:
                return union(given)
        step = self._look.one_step(code, node)
        return None if step is None or step[1] is node else self.of(*step, left - 1)

    def _counted(self, code: Syntax, node: ast.Name, left: int) -> Range | None:
        """The variable of a loop or comprehension over numbers."""
        for up in code.above(node):
            for made in getattr(up, "generators", ()):
                if isinstance(made.target, ast.Name) and made.target.id == node.id:
                    return self.of(code, made.iter, left - 1)
            if isinstance(up, ast.For) and isinstance(up.target, ast.Name) and up.target.id == node.id:
                return self.of(code, up.iter, left - 1)
        return None

    def _stored(self, code: Syntax, node: ast.Name | ast.Attribute, left: int) -> Range | None:
        """An array of zeros with the numbers that are written into it: `ids[i, :n] = row`."""
        made = code.assigned(node)
        if not isinstance(made, ast.Call) or last_name(made.func) not in ("zeros", "empty", "full", "zeros_like"):
            return None
        scope = code.scope(made)
        written_in = [s.value for s in code.item_stores.get(written(node), ()) if code.scope(s) is scope]
        return union([self.of(code, v, left - 1) for v in written_in])

    def _result(self, code: Syntax, call: ast.Call, place: int | None, left: int) -> Range | None:
        found = self._look.function(code, call.func)
        if found is None:
            return None
        given = []
        for value in returned(found[1]):
            if place is None:
                given.append(self.of(found[0], value, left - 1))
            elif isinstance(value, ast.Tuple) and -len(value.elts) <= place < len(value.elts):
                given.append(self.of(found[0], value.elts[place], left - 1))
        return union(given)

    # --- callers

    def _passed(self, code: Syntax, name: ast.Name) -> Iterator[Where]:
        """What the callers of a function pass for a parameter."""
        body = next((a for a in code.above(name) if isinstance(a, (*FunctionNode, ast.Lambda))
                     and name.id in parameters(a)), None)  # fmt: skip
        if not isinstance(body, ast.FunctionDef):
            return
        spec = [n for n in parameters(body) if n not in ("self", "cls")]
        for other, call, skipped in self._calls(code, body):
            value = argument(call, spec.index(name.id) + skipped, name.id) if name.id in spec else None
            if value is not None:
                yield other, value

    def _calls(self, code: Syntax, body: ast.FunctionDef) -> Iterator[tuple[Syntax, ast.Call, int]]:
        owner = code.owner(body)
        if owner is not None and body.name in ("__call__", "forward") and any(written(b) in _MODULES
                                                                              for b in owner.bases):  # fmt: skip
            yield from self._module_calls(owner)
            return
        if len(self._look.functions.get(body.name, ())) != 1:
            return
        for other in self._look.codes:
            yield from ((other, c, 0) for c in other.calls(body.name))
            for call in other.of(ast.Call):
                if isinstance(call.func, ast.Call) and _wrapped(call.func) == body.name:
                    yield other, call, 0
            for made in other.of(ast.Assign):
                if isinstance(made.value, ast.Call) and _wrapped(made.value) == body.name:
                    bound = 0 if last_name(made.value.func) != "partial" else 1 - len(made.value.args)
                    for target in made.targets:
                        yield from ((other, c, bound) for c in other.calls(last_name(target)) if last_name(target))

    def _module_calls(self, owner: ast.ClassDef) -> Iterator[tuple[Syntax, ast.Call, int]]:
        """Calls of a module: of its instance, of apply, and of the unknown model where it is the only one."""
        holders = {last_name(t) for code in self._look.codes for c in code.calls(owner.name)
                   for s in (code.parent(c),) if isinstance(s, ast.Assign) for t in s.targets}  # fmt: skip
        inner = {last_name(c.func) for code in self._look.codes for c in code.of(ast.Call)
                 if code.owner(c) is not None and last_name(c.func) in self._look.classes}  # fmt: skip
        tops = [n for n, found in self._look.classes.items() if n not in inner
                and any(written(b) in _MODULES for _, k in found for b in k.bases)]  # fmt: skip
        if tops == [owner.name]:
            holders |= {"model", "net", "network", "module"}
        for code in self._look.codes:
            for call in code.of(ast.Call):
                func = call.func
                built = isinstance(func, ast.Call) and (last_name(func.func) == owner.name or _wrapped(func) in holders)
                by_apply = isinstance(func, ast.Attribute) and func.attr == "apply" and last_name(func.value) in holders
                if built or (last_name(func) in holders and last_name(func)):
                    yield code, call, 0
                elif by_apply or (last_name(func) == "apply_fn" and tops == [owner.name]):
                    yield code, call, 1


def _wrapped(call: ast.Call) -> str:
    """The function inside `jit(value_and_grad(f))`."""
    node: ast.expr = call
    while isinstance(node, ast.Call):
        if last_name(node.func) not in _WRAPS or not node.args:
            return ""
        node = node.args[0]
    return last_name(node)

