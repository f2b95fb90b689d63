"""How many time steps a network leaves of its input, and how long the texts are that it has to write."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.on_code.lookup import Lookup
from traindx_tools.on_code.row_counts import Counter, Spot
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import FunctionNode, Syntax, argument, last_name, parameters, written

_REDUCES = re.compile(r"^(Conv|MaxPool|AvgPool|LPPool)[12]d$")
_MAKES = frozenset({"zeros", "ones", "full", "randn", "rand", "empty", "normal"})
_DRAWS = frozenset({"choice", "choices", "randrange", "randint", "integers", "sample"})
_LIMIT = re.compile(r"^max_?(label|target|text|word|char|transcript|plate|digit|len|symbol|token)\w*$", re.IGNORECASE)
_ITEM = re.compile(r"char|alphabet|digit|symbol|letter|vocab|token|glyph|phone|word|text|label|code", re.IGNORECASE)
_RESIZES = frozenset({"Resize", "resize"})


@dataclass(frozen=True)
class Reduction:
    """A network's layers along the time axis."""

    factor: float
    layers: tuple[tuple[float, float, float], ...]
    """(kernel, stride, padding) in the order of the text."""
    place: tuple[Syntax, ast.Call]
    last: bool
    """Whether time is the last axis of two-dimensional layers."""

    def left(self, steps: float) -> float:
        """The time steps of the output for an input of this many."""
        for kernel, stride, padding in self.layers:
            steps = (steps + 2 * padding - kernel) // stride + 1
        return max(0.0, steps)


def reduction(look: Lookup) -> Reduction | None:
    """The strides along time of the project's only network; None where they are not fixed by the text."""
    found: list[tuple[Syntax, ast.Call]] = []
    for code in look.codes:
        for call in code.of(ast.Call):
            owner = code.owner(call)
            if _REDUCES.match(last_name(call.func)) and owner is not None and last_name(call.func) != "Conv2dTranspose":
                if code.loops(call) or any(isinstance(a, (ast.ListComp, ast.GeneratorExp)) for a in code.above(call)):
                    return None
                if len(look.calls.get(owner.name, [])) > 1:
                    return None
                found.append((code, call))
    last = _time_is_last(look)
    layers: list[tuple[float, float, float]] = []
    factor, place = 1.0, None
    for code, call in found:
        one = _along(look, code, call, last)
        if one is None:
            return None
        layers.append(one)
        if one[1] > 1:
            factor, place = factor * one[1], (code, call)
    return None if place is None else Reduction(factor, tuple(layers), place, last)


def _time_is_last(look: Lookup) -> bool:
    """Which axis of (batch, channels, a, b) becomes time: the last one unless a permutation says (0, 2, 1, 3)."""
    for code in look.codes:
        for call in code.calls("permute"):
            axes = [a.value for a in call.args if isinstance(a, ast.Constant)]
            if axes in ([0, 2, 1, 3], [2, 0, 1, 3], [0, 2, 3, 1]):
                return False
    return True


def _along(look: Lookup, code: Syntax, call: ast.Call, last: bool) -> tuple[float, float, float] | None:
    kind, pool = last_name(call.func), "Pool" in last_name(call.func)
    first = 0 if pool else 2
    kernel = _part(look, code, argument(call, first, "kernel_size"), last)
    given = argument(call, first + 1, "stride")
    stride = _part(look, code, given, last) if given is not None else kernel if pool else 1.0
    pad = argument(call, first + 2, "padding")
    if isinstance(pad, ast.Constant) and pad.value == "same":
        return (1.0, 1.0, 0.0)
    padding = _part(look, code, pad, last) if pad is not None else 0.0
    dilation = argument(call, 3 if pool else 5, "dilation")
    if dilation is not None and kind.startswith("Conv") and kernel is not None:
        wide = _part(look, code, dilation, last)
        kernel = None if wide is None else wide * (kernel - 1) + 1
    return None if kernel is None or not stride or padding is None else (kernel, stride, padding)


def _part(look: Lookup, code: Syntax, node: ast.expr | None, last: bool) -> float | None:
    """The number of a size along time: 2, (3, 2)."""
    if isinstance(node, (ast.Tuple, ast.List)) and node.elts:
        node = node.elts[-1 if last else 0]
    return None if node is None else Counter(look).number(Spot(code, node))


def widths(look: Lookup, last: bool) -> list[float]:
    """The sizes along time that the program's images and sequences have."""
    found: list[float] = []
    for code in look.codes:
        for call in code.of(ast.Call):
            name, owner = last_name(call.func), code.owner(call)
            if owner is not None and any("Module" in written(b) for b in owner.bases):
                continue
            sizes: list[ast.expr] = []
            if name in _MAKES:
                held = call.args[0] if call.args else None
                sizes = list(held.elts) if isinstance(held, (ast.Tuple, ast.List)) else list(call.args)
                sizes = [s for s in sizes if not isinstance(s, ast.Starred)]
            elif name in _RESIZES and call.args:
                held = next((a for a in call.args if isinstance(a, (ast.Tuple, ast.List))), None)
                sizes = list(held.elts) if held is not None else []
                if name == "resize":  # PIL and OpenCV take (width, height)
                    sizes.reverse()
            if len(sizes) >= 2:
                number = Counter(look).number(Spot(code, sizes[-1 if last else -2]))
                if number is not None and number >= 8:
                    found.append(number)
    return found


def longest(look: Lookup) -> tuple[float, Syntax, ast.expr] | None:
    """The most characters of a text: drawn a number of times, limited by an option, or the longest of a list."""
    found: list[tuple[float, Syntax, ast.expr]] = []
    for code in look.codes:
        comprehensions: list[ast.ListComp | ast.GeneratorExp] = [*code.of(ast.ListComp), *code.of(ast.GeneratorExp)]
        for made in comprehensions:
            over = made.generators[0].iter
            draws = any(isinstance(n, ast.Call) and last_name(n.func) in _DRAWS for n in below(made.elt))
            if not draws or not isinstance(over, ast.Call) or last_name(over.func) != "range" or len(over.args) != 1:
                continue
            if any(isinstance(n, (ast.ListComp, ast.GeneratorExp)) for n in below(made.elt)):
                continue
            if _ITEM.search(written(made.elt)):
                found += [(n, code, over.args[0]) for n in _most(look, code, over.args[0])]
        for call in code.calls("choices", "choice", "integers", "randint"):
            count = argument(call, 2, "k", "size")
            if isinstance(count, (ast.Tuple, ast.List)):
                count = None
            if count is not None and call.args and _ITEM.search(written(call)):
                found += [(n, code, count) for n in _most(look, code, count)]
        for name, value in code.options.items():
            if _LIMIT.match(name):
                found += [(n, code, value) for n in _most(look, code, value)]
        for assigned in code.file.tree.body:
            if isinstance(assigned, ast.Assign) and _LIMIT.match(last_name(assigned.targets[0])):
                found += [(n, code, assigned.value) for n in _most(look, code, assigned.value)]
    return max(found, key=lambda f: f[0], default=None)


def _most(look: Lookup, code: Syntax, node: ast.expr, left: int = 5) -> Iterator[float]:
    """The largest value of a length: of `random.randint(3, longest)` the upper end, of a parameter every argument."""
    if left <= 0:
        return
    if isinstance(node, ast.Call) and last_name(node.func) in ("int", "item"):
        inner = node.args[0] if node.args else getattr(node.func, "value", None)
        if isinstance(inner, ast.expr):
            yield from _most(look, code, inner, left - 1)
        return
    if isinstance(node, ast.Call) and last_name(node.func) in ("randint", "randrange", "integers"):
        high = argument(node, 1, "high", "b") or argument(node, 0, "low", "a")
        closed = last_name(node.func) == "randint" and written(node.func).startswith("random.")
        if high is not None:
            yield from (n if closed else n - 1 for n in _most(look, code, high, left - 1))
        return
    number = Counter(look).number(Spot(code, node))
    if number is not None:
        yield number
        return
    if not isinstance(node, ast.Name):
        return
    bound = code.bindings(node)
    if len(bound) == 1:
        yield from _most(look, code, bound[0][1], left - 1)
        return
    body = next((a for a in code.above(node) if isinstance(a, FunctionNode) and node.id in parameters(a)), None)
    if body is None or bound or not isinstance(body, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return
    names = [n for n in parameters(body) if n not in ("self", "cls")]
    if node.id not in names:
        return
    given = [(c, argument(call, names.index(node.id), node.id)) for c, call in look.callers(body, code)]
    for other, value in given:
        if value is not None:
            yield from _most(look, other, value, left - 1)
    default = parameters(body)[node.id]
    if default is not None and not any(v is not None for _, v in given):
        yield from _most(look, code, default, left - 1)
