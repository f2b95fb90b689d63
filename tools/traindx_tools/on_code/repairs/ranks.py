"""Ranks that start from different weights (C116), call a collective unequally often (C117), or stop apart (C264)."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Sequence

from traindx_tools.finding import Patch
from traindx_tools.on_code.changes import Change, source_of
from traindx_tools.on_code.source import SourceFile, below
from traindx_tools.on_code.syntax import Syntax, argument, last_name, names_in, syntax, written


def one_seed_for_the_model(file: SourceFile, seed: ast.AST, model: Sequence[ast.AST]) -> tuple[Patch, ...]:
    """The same seed on every rank while the model is built, the rank's own one behind it.

    `model`: the calls through which it is built, of which one stands beside the seed.
    """
    code = syntax(file)
    statement = code.statement(seed)
    value = argument(seed, 0, "seed") if isinstance(seed, ast.Call) else None
    if not isinstance(seed, ast.Call) or not isinstance(statement, ast.Expr) or not isinstance(value, ast.BinOp):
        return ()
    if not isinstance(value.op, ast.Add):
        return ()
    sides = [(value.left, value.right), (value.right, value.left)]
    common = [a for a, b in sides if _is_rank(b) and not _is_rank(a)]
    change = Change(file, "build the model from one seed on every rank")
    block = change.block(statement)
    built = next((s for m in model if (s := code.statement(m)) in block), None)
    if len(common) != 1 or built is None:
        return ()
    change.unwrap(value, common[0])
    return change.after(built, source_of(file, statement)).patches()


def _is_rank(node: ast.AST) -> bool:
    return "rank" in written(node).lower()


_SAYS = re.compile(r"^(print|tqdm\.write|(\w+\.)*(log|logger|logging|lg)\w*(\.\w+)?|(\w+\.)+(info|debug|warning))$")
_RANK = re.compile(r"rank|is_(local_)?(main|master|global_zero|world_process_zero)", re.IGNORECASE)
_MOVED = re.compile(r"\.(?:to|cuda)\(((?:self\.|args\.|cfg\.)?(?:device|local_rank|rank|gpu))\)")
_WAITS = ("barrier", "monitored_barrier", "wait_for_everyone")


def equal_shares(files: Sequence[SourceFile]) -> tuple[Patch, ...]:
    """`x[rank:len(x) // world * world:world]` for `x[rank::world]`, where one statement alone takes the shares."""
    taken = [(f, part) for f in files for part in syntax(f).of(ast.Subscript) if _is_share(part)]
    if len({(f.path, id(syntax(f).statement(part))) for f, part in taken}) != 1:
        return ()
    change = Change(taken[0][0], "give every rank equally many samples")
    for file, part in taken:
        slices, whole = part.slice, part.value
        if not isinstance(slices, ast.Slice) or not isinstance(whole, (ast.Name, ast.Attribute)):
            return ()
        first, step = source_of(file, slices.lower), source_of(file, slices.step)  # type: ignore[arg-type]
        step = step if isinstance(slices.step, (ast.Name, ast.Attribute, ast.Constant, ast.Call)) else f"({step})"
        change.replace(slices, f"{first}:len({source_of(file, whole)}) // {step} * {step}:{step}")
    return change.patches()


def _is_share(part: ast.Subscript) -> bool:
    cut = part.slice
    return (isinstance(cut, ast.Slice) and cut.lower is not None and cut.step is not None and cut.upper is None
            and _is_rank(cut.lower))  # fmt: skip


def reached_by_all(file: SourceFile, condition: ast.AST, node: ast.AST) -> tuple[Patch, ...]:
    """The call that reaches a collective taken out of a condition on the rank, in front of it or behind it."""
    code = syntax(file)
    statement = code.statement(node)
    if not isinstance(condition, ast.If) or condition.orelse or statement is None or not isinstance(node, ast.Call):
        return ()
    if not any(s is statement for s in condition.body) or _in_an_arm(code, condition):
        return ()
    change = Change(file, "let every rank call it")
    before = condition.body[: condition.body.index(statement)]
    if isinstance(statement, ast.Expr) and statement.value is node and last_name(node.func) in _WAITS:
        return change.move_after(statement, condition).patches() if statement is condition.body[-1] else ()
    if not all(_only_says(s) for s in before) or _comes_late(statement, code.above(node)):
        return ()
    if not _known_everywhere(code, node):
        return ()
    if getattr(statement, "value", None) is node:
        return change.move_before(statement, condition).patches()
    name = next(n for n in ("result", "gathered", "for_all_ranks") if n not in names_in(code.scope(node)))
    return change.before(condition, f"{name} = {source_of(file, node)}").replace(node, name).patches()


def _in_an_arm(code: Syntax, condition: ast.If) -> bool:
    """Whether the condition is an `elif`, or stands under another one on the rank."""
    up = code.parent(condition)
    if isinstance(up, ast.If) and any(s is condition for s in up.orelse):
        return True
    return _on_some_ranks(code, condition)


def _on_some_ranks(code: Syntax, node: ast.AST) -> bool:
    return any(isinstance(a, ast.If) and _RANK.search(written(a.test)) for a in code.above(node))


def _known_everywhere(code: Syntax, node: ast.Call) -> bool:
    """Whether no name in the call is bound under a condition on the rank."""
    names = [n for n in below(node) if isinstance(n, ast.Name)]
    return not any(_on_some_ranks(code, s) for n in names for s, _ in code.bindings(n))


def _only_says(statement: ast.stmt) -> bool:
    """Whether a statement prints or logs and changes nothing."""
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call) and bool(
        _SAYS.match(written(statement.value.func)))  # fmt: skip


def _comes_late(statement: ast.stmt, above: Iterable[ast.AST]) -> bool:
    """Whether a call happens only sometimes, or many times, when its statement runs."""
    if not isinstance(statement, (ast.Expr, ast.Assign, ast.AnnAssign, ast.AugAssign)):
        return True
    some = (ast.IfExp, ast.BoolOp, ast.Lambda, ast.GeneratorExp, ast.ListComp, ast.DictComp, ast.SetComp)
    return any(isinstance(a, some) for a in above if getattr(a, "lineno", 0) >= statement.lineno)


def metric_of_all(code: Syntax, loop: ast.For | ast.While, branch: ast.If, used: Collection[str]) -> tuple[Patch, ...]:
    """The metric that a stop depends on averaged over the ranks, behind the one statement of the loop that measures it.

    `used`: the names that the condition depends on.
    """
    measured = [s for s in loop.body if isinstance(s, ast.Assign) and len(s.targets) == 1 and s.lineno < branch.lineno
                and isinstance(s.targets[0], ast.Name) and s.targets[0].id in used and isinstance(s.value, ast.Call)]
    names = {v: k for k, v in code.aliases.items()}
    torch, dist = names.get("torch"), names.get("torch.distributed")
    taken = names_in(code.scope(loop))
    shared = next((n for n in ("shared", "over_ranks", "of_all_ranks") if n not in taken), None)
    moved = [m for m in _MOVED.findall(code.file.text) if m.partition(".")[0] in taken]
    gloo = "gloo" in code.file.text and "nccl" not in code.file.text
    device = "" if gloo else f", device={moved[0]}" if moved else None
    if len(measured) != 1 or None in (torch, dist, shared, device):
        return ()
    name = written(measured[0].targets[0])
    lines = (f"{shared} = {torch}.tensor({name}{device})", f"{dist}.all_reduce({shared})",
             f"{name} = {shared}.item() / {dist}.get_world_size()")  # fmt: skip
    return Change(code.file, "one decision for all ranks").after(measured[0], "\n".join(lines)).patches()


def wrapped_again(code: Syntax, thaw: ast.AST, wrapper: ast.AST) -> tuple[Patch, ...]:
    """`net = DDP(net.module, ...)` behind what unfreezes a part, so that the hooks cover what is trained now."""
    made, statement = code.statement(wrapper), code.statement(thaw)
    loop = code.parent(statement) if statement is not None else None
    if isinstance(loop, ast.For) and loop.body == [statement]:
        statement = loop
    target = made.targets[0] if isinstance(made, ast.Assign) and made.value is wrapper else None
    if not isinstance(wrapper, ast.Call) or not wrapper.args or statement is None or target is None:
        return ()
    own = isinstance(target, ast.Attribute) and written(target.value) == "self"
    near = code.owner(thaw) is code.owner(wrapper) is not None if own else (
        isinstance(target, ast.Name) and code.scope(thaw) is code.scope(wrapper))  # fmt: skip
    text, first = source_of(code.file, wrapper), source_of(code.file, wrapper.args[0])
    if not near or "\n" in text or not text.startswith(f"{source_of(code.file, wrapper.func)}({first}"):
        return ()
    name = written(target)
    if any(written(other.value) == name for other in code.of(ast.Assign)):
        return ()  # the old wrapper would go on under another name
    again = text.replace(f"({first}", f"({name}.module", 1)
    return Change(code.file, "wrap the model again").after(statement, f"{name} = {again}").patches()
