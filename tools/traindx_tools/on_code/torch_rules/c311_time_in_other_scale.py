"""A diffusion or flow model is told the time in another scale when it draws samples than in training.

Training passes `t / T`, a number in [0, 1), and the sampler passes the index, 0 to T - 1 (or the other way round). The
time embedding is then asked for values that it never saw, nearly all of them far outside, and the predicted noise is
wrong at every step. The training loss is as it should be, samples are not, and more steps make them worse. The rule
compares the two calls of the network: random times (`randint`, `rand`) on one side, the counter of a loop on the other.
The same holds where one side passes the noise level (`sigmas[i]`) and the other the index. A network that divides by
itself is given the index in both and is left alone.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.finding import Bearing, Finding
from traindx_tools.invariants.pages import pages
from traindx_tools.on_code.lookup import Lookup, lookup
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.syntax import Syntax, last_name, names_in, parameters, written

(RULE,) = pages("data", ("C311",))
INDEX, UNIT = "the index of the step", "a number between 0 and 1"
_DRAWS = re.compile(r"randint\(|rand\(|integers\(|uniform\(")
_TIME = re.compile(r"t|ts|time\w*|step\w*|tau|sigma\w*|noise_level\w*|noise_cond\w*|log_?snr", re.IGNORECASE)


_AS_IT_IS = frozenset({
    "float", "to", "long", "int", "view", "reshape", "unsqueeze", "squeeze", "expand", "repeat", "cuda", "cpu",
    "type_as", "double", "half", "flatten", "clone", "contiguous", "expand_as", "type", "astype", "item",
})  # fmt: skip
_FILLED = {"full": 1, "full_like": 1, "tensor": 0, "as_tensor": 0, "asarray": 0, "array": 0}
_ONES = frozenset({"ones", "ones_like"})
_COUNTED = frozenset({"range", "arange"})
_DEEP = 8


@dataclass(frozen=True)
class _Told:
    """An argument of a call that is a time: in which scale, and whether it is a random one or a loop's counter."""

    code: Syntax
    call: ast.Call
    place: int | str
    scale: str
    random: bool


def check(project: Project) -> Iterator[Finding]:
    """Compare the calls of each network in training with those in a sampling loop."""
    if not any(f.mentions(_DRAWS) for f in project.files):
        return
    find = lookup(project)
    codes = [c for c in find.codes if "torch" in c.file.text or "jax" in c.file.text]
    told = [t for code in codes if code.file.mentions(_DRAWS) for t in _told(find, code)]
    if not any(t.random for t in told):
        return
    told = [t for code in codes for t in _told(find, code)]
    for sampled in (t for t in told if not t.random):
        name = _name(sampled.call)
        trained = [t for t in told if t.random and t.place == sampled.place
                   and (_same(_name(t.call), name) or _only_network(find, len(t.call.args)))
                   and len(t.call.args) == len(sampled.call.args)]  # fmt: skip
        scales = {t.scale for t in trained}
        if scales and sampled.scale not in scales:
            yield _finding(trained[0], sampled)


def _told(find: Lookup, code: Syntax) -> Iterator[_Told]:
    for call in code.of(ast.Call):
        if len(call.args) + len(call.keywords) < 2 or code.qualified(call.func).partition(".")[0] in (
                "torch", "numpy", "math", "jax"):  # fmt: skip
            continue
        applied = last_name(call.func) in ("apply", "apply_fn")
        if isinstance(call.func, ast.Attribute) and written(call.func.value) not in ("self", "cls") and not applied:
            continue
        given: list[tuple[int | str, ast.expr]] = [*enumerate(call.args)]
        given += [(k.arg or "", k.value) for k in call.keywords]
        for place, value in given:
            if place == 0:
                continue
            found = _scale(code, value, _DEEP)
            if found is not None and _is_network(find, code, call):
                yield _Told(code, call, place, *found)


def _is_network(find: Lookup, code: Syntax, call: ast.Call) -> bool:
    """Whether it is not a function of the project: then its name stands for a module that is called."""
    return find.function(code, call.func) is None and last_name(call.func) not in find.classes


def _only_network(find: Lookup, given: int) -> bool:
    """Whether the project has one network alone that takes a time, so that calls by any name are its calls."""
    bodies = [f for _, f in find.functions.get("forward", ()) if len(_taken(f)) >= 2]
    forwards = [f for f in bodies if _TIME.fullmatch(_taken(f)[1])]
    return len(forwards) == 1 and len(_taken(forwards[0])) >= given


def _taken(body: ast.FunctionDef) -> list[str]:
    return [n for n in parameters(body) if n != "self"]


def _name(call: ast.Call) -> str:
    return last_name(call.func).lower()


def _same(a: str, b: str) -> bool:
    """The same network, or its average."""
    return a == b or a.replace("ema", "").strip("_") == b.replace("ema", "").strip("_") != ""


def _scale(code: Syntax, node: ast.expr, left: int) -> tuple[str, bool] | None:
    """(scale, whether random) of a time."""
    if left <= 0:
        return None
    if isinstance(node, ast.Name):
        counter = _counter(code, node)
        if counter:
            return INDEX, False
        made = code.assigned(node)
        return _scale(code, made, left - 1) if made is not None and made is not node else None
    if isinstance(node, ast.Subscript):
        keeps = all(isinstance(x, ast.Slice) or (isinstance(x, ast.Constant) and x.value in (None, Ellipsis)) for x in
                    (node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]))  # fmt: skip
        return _scale(code, node.value, left - 1) if keeps else None
    if isinstance(node, ast.List):
        return _scale(code, node.elts[0], left - 1) if len(node.elts) == 1 else None
    if isinstance(node, ast.BinOp):
        return _computed(code, node, left)
    return _of_call(code, node, left) if isinstance(node, ast.Call) else None


def _computed(code: Syntax, node: ast.BinOp, left: int) -> tuple[str, bool] | None:
    if isinstance(node.op, ast.Mult):
        for one, other in ((node.left, node.right), (node.right, node.left)):
            filled = isinstance(one, ast.Call) and last_name(one.func) in _ONES
            if filled or (isinstance(one, ast.List) and _scale(code, one, left - 1)):
                return _scale(code, other if filled else one, left - 1)
            number, found = code.number(other), _scale(code, one, left - 1)
            if found is not None and number is not None and number >= 10 and found[0] == UNIT:
                return INDEX, found[1]
        return None
    if isinstance(node.op, ast.Div):
        found, number = _scale(code, node.left, left - 1), code.number(node.right)
        if found is None or found[0] != INDEX or (number is not None and number < 10):
            return None
        return UNIT, found[1]
    if isinstance(node.op, (ast.Add, ast.Sub)) and code.number(node.right) is not None:
        found = _scale(code, node.left, left - 1)
        return found if found is not None and found[0] == INDEX else None
    if isinstance(node.op, ast.Sub) and isinstance(node.right, ast.Name):  # T - 1 - k
        found = _scale(code, node.right, left - 1)
        return found if found is not None and found[0] == INDEX and not found[1] else None
    return None


def _of_call(code: Syntax, node: ast.Call, left: int) -> tuple[str, bool] | None:
    name = last_name(node.func)
    library = code.qualified(node.func).partition(".")[0] in ("torch", "jax", "numpy")
    if (library and name == "randint") or (name == "integers" and "rng" in written(node.func)):
        return INDEX, True
    if library and (name == "rand" or (name == "uniform" and _from_0_to_1(code, node))):
        return UNIT, True
    if name in ("float", "int") and isinstance(node.func, ast.Name) and len(node.args) == 1:
        return _scale(code, node.args[0], left - 1)
    if library and name in _FILLED and len(node.args) > _FILLED[name]:
        return _scale(code, node.args[_FILLED[name]], left - 1)
    if not library and name in _AS_IT_IS and isinstance(node.func, ast.Attribute):
        return _scale(code, node.func.value, left - 1)
    return None


def _from_0_to_1(code: Syntax, call: ast.Call) -> bool:
    """`jax.random.uniform(key, shape)`, without bounds or with a largest value of 1."""
    high = next((k.value for k in call.keywords if k.arg in ("maxval", "high")), None)
    return code.qualified(call.func).startswith("jax") and len(call.args) <= 2 and (
        high is None or code.number(high) == 1)  # fmt: skip


def _counter(code: Syntax, name: ast.Name) -> bool:
    """Whether a name counts the steps of a sampling loop: downwards, or while it changes what the network is given."""
    for loop in code.loops(name):
        if not isinstance(loop, ast.For):
            continue
        if not isinstance(loop.target, ast.Name) or loop.target.id != name.id:
            continue
        over = loop.iter
        while isinstance(over, ast.Call) and last_name(over.func) in ("tqdm", "trange", "list") and over.args:
            over = over.args[0]
        if isinstance(over, ast.Subscript) and written(over.slice) == "::-1":
            return isinstance(over.value, ast.Call) and last_name(over.value.func) in _COUNTED
        if not isinstance(over, ast.Call):
            return False
        if last_name(over.func) == "reversed" and over.args and isinstance(over.args[0], ast.Call):
            return last_name(over.args[0].func) in _COUNTED
        if last_name(over.func) not in _COUNTED:
            return False
        down = len(over.args) == 3 and code.number(over.args[2]) == -1
        return down or (len(over.args) <= 2 and _advances(code, loop))
    return False


def _advances(code: Syntax, loop: ast.For) -> bool:
    """Whether the loop computes a sample from itself and a network's answer: `x = x + dt * net(x, t)`."""
    if code.calls_in(loop, "backward", "grad", "value_and_grad"):
        return False
    given = {c.args[0].id for c in code.inside(loop, ast.Call) if len(c.args) >= 2 and isinstance(c.args[0], ast.Name)
             and not code.qualified(c.func)}  # fmt: skip
    for step in code.inside(loop, ast.AugAssign):
        if isinstance(step.target, ast.Name) and step.target.id in given:
            return True
    return any(isinstance(t, ast.Name) and t.id in given and isinstance(step.value, ast.BinOp)
               and t.id in names_in(step.value)
               for step in code.inside(loop, ast.Assign) for t in step.targets)  # fmt: skip


def _finding(trained: _Told, sampled: _Told) -> Finding:
    here, there = sampled.code, trained.code
    return RULE.finding(
        f"{written(sampled.call)[:60]} at {here.at(sampled.call)} passes {sampled.scale} as the time in sampling, but "
        f"training passes {trained.scale} ({written(trained.call)[:60]} at {there.at(trained.call)}): the scales "
        "differ",
        here.place(sampled.call),
        here.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": "time scale", "sampling": sampled.scale, "training": trained.scale},
    )
