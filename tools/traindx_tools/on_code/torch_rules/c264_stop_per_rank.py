"""Every process decides for itself when to leave the training loop.

Under DistributedDataParallel each backward is a collective. A process that stops early, by the validation loss of its
own share of the data, by the training loss of its own batches or by its own clock, leaves the loop while the others
still wait for its gradients: the job hangs until a timeout. The same happens to a batch that one process skips because
its loss is not finite. The decision has to be one for all: reduce the metric, or broadcast the decision of rank 0.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.invariants.pages import pages
from traindx_tools.on_code.call_paths import reached_calls
from traindx_tools.on_code.lookup import Lookup, lookup
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, last_name, names_in, syntax, written

(RULE,) = pages("ranks", ("C264",))
_DISTRIBUTED = re.compile(
    r"DistributedDataParallel|\bDDP\(|FullyShardedDataParallel|FSDP\(|fully_shard|init_process_group|Accelerator\("
    r"|Fabric\(")
_SHARED = re.compile(r"reduce|gather|broadcast|check_trigger|set_trigger|synchronize_between|agree|consensus"
                     r"|sync_metric", re.IGNORECASE)  # fmt: skip
_OWN_PART = re.compile(r"\brank\b|local_rank|DistributedSampler|world_size|process_index|global_rank|\.prepare\(|"
                       r"setup_dataloaders", re.IGNORECASE)  # fmt: skip
_CLOCK = frozenset({"time.time", "time.perf_counter", "time.monotonic", "datetime.datetime.now", "datetime.now"})
_RANK = re.compile(r"^(local_|global_|self\.)?rank$|is_(local_)?main(_process)?$|is_master$|is_rank_?0$|get_rank\(\)|"
                   r"is_global_zero|process_index", re.IGNORECASE)  # fmt: skip
_REPORTS = re.compile(r"log|print|write|save|backward|info|debug|warn|clip|barrier|setup|set_postfix", re.IGNORECASE)
"""What tells a logger or an engine something: no decision comes back from it."""
_OF_ALL = frozenset({"clip_grad_norm_", "clip_grad_norm", "get_total_norm", "get_global_grad_norm", "clip_gradients"})
"""The norm of gradients that backward has averaged over the ranks: the same on each."""
_LOSSY = re.compile(r"loss|mse|mae|nll|objective|perplex|error", re.IGNORECASE)
_DEEP = 7


def check(project: Project) -> Iterator[Finding]:
    """Look at every way out of a distributed training loop."""
    files = [f for f in project.files if "break" in f.text or "return" in f.text or "continue" in f.text]
    if not any(f.mentions(_DISTRIBUTED) for f in project.files):
        return
    look = lookup(project)
    for file in files:
        code = syntax(file)
        if len(project.files) > 40 and not file.mentions(_DISTRIBUTED):
            continue
        loops: list[ast.For | ast.While] = [*code.of(ast.For), *code.of(ast.While)]
        for loop in loops:
            ways = list(_ways_out(code, loop))
            if not ways or not _trains(look, code, loop) or _agrees(look, code, loop):
                continue
            for branch in ways:
                found = _judged(look, code, loop, branch)
                if found is not None:
                    yield found
                    return


def _trains(look: Lookup, code: Syntax, loop: ast.AST) -> bool:
    if not code.file.mentions(_DISTRIBUTED) and not any(c.file.mentions(_DISTRIBUTED) for c in look.codes):
        return False
    return any(last_name(c.func) == "backward" for _, c in reached_calls(look, code, loop))


def _agrees(look: Lookup, code: Syntax, loop: ast.AST) -> bool:
    """Whether the loop, or what it calls, brings any value together over the ranks."""
    return any(_SHARED.search(last_name(c.func)) and last_name(c.func) != "functools.reduce"
               and not _of_gradients(look, where, c) for where, c in reached_calls(look, code, loop, 4))  # fmt: skip


def _of_gradients(look: Lookup, code: Syntax, call: ast.Call) -> bool:
    """Whether what is reduced is gradients only, by hand: `dist.all_reduce(p.grad)`, or a function that does that."""
    if call.args and re.search(r"\.grad(\.data)?$", written(call.args[0])):
        return True
    own = look.function(code, call.func)
    calls = [n for n in below(own[1]) if isinstance(n, ast.Call)] if own is not None else []
    shared = [n for n in calls if _SHARED.search(last_name(n.func))]
    return own is not None and bool(shared) and all(
        n.args and re.search(r"\.grad(\.data)?$", written(n.args[0])) for n in shared)  # fmt: skip


def _ways_out(code: Syntax, loop: ast.For | ast.While) -> Iterator[ast.If]:
    """The conditions under which this very loop is left, or an iteration is skipped before its backward."""
    for branch, around in _branches(code):
        if not any(a is loop for a in around):
            continue
        last = branch.body[-1]
        leaves = isinstance(last, ast.Break) and around[0] is loop
        if leaves or (isinstance(last, ast.Return) and code.scope(branch) is code.scope(loop)):
            yield branch
        elif isinstance(last, ast.Continue) and around[0] is loop and _not_finite(branch.test):
            later = [c for c in code.calls("backward") if c.lineno > branch.lineno and code.loops(c)[:1] == [loop]]
            if later:
                yield branch


def _branches(code: Syntax) -> list[tuple[ast.If, list[ast.AST]]]:
    """The conditions that leave a loop or an iteration, each with the loops around it."""
    known: list[tuple[ast.If, list[ast.AST]]] | None = code.__dict__.get("_leaving")
    if known is None:
        ends = (ast.Break, ast.Return, ast.Continue)
        known = [(b, around) for b in code.of(ast.If) if isinstance(b.body[-1], ends) and (around := code.loops(b))]
        code.__dict__["_leaving"] = known
    return known


def _not_finite(test: ast.expr) -> bool:
    return any(isinstance(n, ast.Call) and last_name(n.func) in ("isnan", "isfinite", "isinf") for n in below(test))


def _judged(look: Lookup, code: Syntax, loop: ast.For | ast.While, branch: ast.If) -> Finding | None:
    out = branch.body[-1]
    verb = "skips the batch" if isinstance(out, ast.Continue) else "leaves the training loop"
    named = [n for n in below(branch.test) if isinstance(n, (ast.Name, ast.Attribute, ast.Call))]
    if any(_RANK.search(written(n)) for n in named):
        return _finding(code, branch, f"only the rank that {written(branch.test)[:60]} asks for {verb}", "rank", True)
    nodes = list(_sources(look, code, loop, branch.test))
    timed = [n for c, n in nodes if isinstance(n, ast.Call) and {written(n.func), c.qualified(n.func)} & _CLOCK]
    if timed:
        if not isinstance(out, ast.Continue):
            return _finding(code, branch, f"each rank {verb} by its own clock", "clock", True)
        return None
    if isinstance(out, ast.Continue):
        if any(isinstance(n, ast.Call) and last_name(n.func) in _OF_ALL for _, n in nodes):
            return None
        return _finding(code, branch, "a rank whose own loss is not finite skips its backward, and the others wait for "
                        "its gradients", "skip", False)  # fmt: skip
    loaders = [(c, n) for c, n in nodes if isinstance(n, ast.Call) and last_name(n.func) == "DataLoader"]
    own = [n for c, n in loaders if _of_own_part(look, c, n)]
    sliced = [n for _, n in nodes if isinstance(n, ast.Subscript) and re.search(r"rank\w*::", written(n))]
    by_rank = [n for _, n in nodes if isinstance(n, ast.Call) and last_name(n.func) in look.functions and any(
        isinstance(a, ast.Name) and re.fullmatch(r"(local_|global_)?rank", a.id) for a in n.args)]  # fmt: skip
    if own or sliced or by_rank:
        where = (own or sliced or by_rank)[0]
        why = (f"the metric is measured on this rank's own part of the data (line {where.lineno}), so ranks decide "
               f"differently and one {verb} early")  # fmt: skip
        return _finding(code, branch, why, "metric", True)
    if _own_loss(code, loop, nodes):
        return _finding(code, branch, "the criterion is the loss of this rank's own batches, so ranks decide "
                        f"differently and one {verb} early", "loss", False)  # fmt: skip
    return None


def _sources(look: Lookup, code: Syntax, loop: ast.AST, test: ast.expr) -> Iterator[tuple[Syntax, ast.AST]]:
    """Everything that a condition depends on: values, the conditions of counters, what an object was told."""
    queue: list[tuple[Syntax, ast.AST, int]] = [(code, test, _DEEP)]
    seen: set[str] = set()
    for owner, node, left in queue:
        for part in _without_lengths(node):
            yield owner, part
            if left <= 0 or not (isinstance(part, (ast.Name, ast.Attribute)) or _entry(part)):
                continue
            key = f"{id(owner)} {written(part)}"
            if key in seen or written(part) in owner.aliases:
                continue
            seen.add(key)
            for value in _fed(look, owner, part, loop):
                queue.append((*value, left - 1))


def _entry(node: ast.AST) -> bool:
    """`state["step"]`: an entry has its own values, and those of the other entries do not decide."""
    key = node.slice if isinstance(node, ast.Subscript) else None
    return isinstance(key, ast.Constant) and isinstance(key.value, str)


def _without_lengths(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes below, without what is only measured by len()."""
    stack = [node]
    while stack:
        part = stack.pop()
        if isinstance(part, ast.Call) and last_name(part.func) == "len":
            continue
        yield part
        if not _entry(part):
            stack += ast.iter_child_nodes(part)


def _fed(look: Lookup, code: Syntax, name: ast.AST, loop: ast.AST) -> Iterator[tuple[Syntax, ast.AST]]:
    if isinstance(name, ast.Subscript):
        yield from _fed_entry(code, name, loop)
        return
    bound = [(s, v) for s, v in code.bindings(name) if not _wraps(v)]
    bound += [(a, a.value) for a in code.of(ast.AugAssign) if written(a.target) == written(name)
              and code.scope(a) is code.scope(name)]  # fmt: skip
    for statement, value in bound:
        yield code, value
        inside = any(up is loop for up in code.above(statement))
        yield from ((code, up.test) for up in code.above(statement) if isinstance(up, ast.If) and inside)
    if not bound and isinstance(name, ast.Name):
        yield from ((code, a.value) for a in code.of(ast.Assign) if code.scope(a) is code.scope(name)
                    and any(isinstance(t, ast.Tuple) and name.id in names_in(t) for t in a.targets))  # fmt: skip
        step = look.one_step(code, name)
        if step is not None and not _wraps(step[1]):
            yield step
    text = written(name)
    for call in (n for n in below(loop) if isinstance(n, ast.Call)):
        told = isinstance(call.func, ast.Attribute) and written(call.func.value) == text and not _REPORTS.search(
            call.func.attr)  # fmt: skip
        if (told or written(call.func) == text) and call.args and "print" not in text:
            yield from ((code, a) for a in call.args)


def _fed_entry(code: Syntax, entry: ast.Subscript, loop: ast.AST) -> Iterator[tuple[Syntax, ast.AST]]:
    """What is stored under this key or appended to it; where nothing is, the whole that it was taken from."""
    text = written(entry)
    stores = [(a, a.value) for a in code.of(ast.Assign) if any(written(t) == text for t in a.targets)]
    grown = [(a, a.value) for a in code.of(ast.AugAssign) if written(a.target) == text]
    told = [a for call in code.of(ast.Call) if isinstance(call.func, ast.Attribute)
            and written(call.func.value) == text for a in call.args]  # fmt: skip
    for statement, value in (*stores, *grown):
        yield code, value
        inside = any(up is loop for up in code.above(statement))
        yield from ((code, up.test) for up in code.above(statement) if isinstance(up, ast.If) and inside)
    yield from ((code, a) for a in told)
    if not stores and not grown and not told:
        yield from _written_entry(code, entry)


def _written_entry(code: Syntax, entry: ast.Subscript) -> Iterator[tuple[Syntax, ast.AST]]:
    """The value under the key of a dictionary that is written out; the whole where it is made in another way."""
    key = entry.slice.value if isinstance(entry.slice, ast.Constant) else None
    made = [v for _, v in code.bindings(entry.value)] if isinstance(entry.value, (ast.Name, ast.Attribute)) else []
    for value in made:
        if isinstance(value, ast.Dict) and None not in value.keys:
            yield from ((code, v) for k, v in zip(value.keys, value.values, strict=True)
                        if isinstance(k, ast.Constant) and k.value == key)  # fmt: skip
        else:
            yield code, value
    if not made:
        yield code, entry.value


def _wraps(value: ast.expr) -> bool:
    """Whether a value is the model itself, whose place depends on the rank and says nothing of data."""
    text = written(value)
    return re.search(r"DistributedDataParallel\(|\bDDP\(|FSDP\(|fully_shard\(|\.to\(|\.cuda\(", text) is not None and (
        "DataLoader" not in text)  # fmt: skip


def _of_own_part(look: Lookup, code: Syntax, loader: ast.Call) -> bool:
    """Whether a loader reads a share of the data: a sampler of ranks, a slice by rank, a prepared loader."""
    queue: list[tuple[Syntax, ast.AST, int]] = [(code, loader, 5)]
    seen: set[str] = set()
    for owner, node, left in queue:
        for part in below(node):
            if isinstance(part, (ast.Name, ast.Attribute, ast.Call)) and _OWN_PART.search(written(part)[:200]):
                return True
            if left > 0 and isinstance(part, ast.Name) and part.id not in seen and part.id not in owner.aliases:
                seen.add(part.id)
                step = look.one_step(owner, part)
                if step is not None:
                    queue.append((*step, left - 1))
    return False


def _own_loss(code: Syntax, loop: ast.AST, nodes: list[tuple[Syntax, ast.AST]]) -> bool:
    """Whether the criterion holds the number of a loss that the loop sends backward."""
    sent = {written(c.func.value) for c in code.calls("backward") if isinstance(c.func, ast.Attribute)
            and any(up is loop for up in code.above(c))}  # fmt: skip
    for owner, node in nodes:
        if owner is code and isinstance(node, ast.Call) and last_name(node.func) in ("item", "float", "detach"):
            of = node.func.value if isinstance(node.func, ast.Attribute) else node.args[0] if node.args else node
            if written(of) in sent and _LOSSY.search(written(of)):
                return True
    return False


def _finding(code: Syntax, branch: ast.If, why: str, kind: str, certain: bool) -> Finding:
    return RULE.finding(
        f"if {written(branch.test)[:80]} at {code.at(branch)}: every process decides for itself, {why}; its peers wait "
        "in the gradient all-reduce until the timeout",
        code.place(branch),
        code.file.path,
        bearing=Bearing.CAUSE if certain else Bearing.SIGN,
        severity=None if certain else Severity.HIGH if kind == "loss" else Severity.MEDIUM,
        measured={"kind": kind},
    )


