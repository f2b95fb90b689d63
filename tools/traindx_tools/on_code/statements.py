"""Statements: control flow, with blocks for loops, branches and contexts."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from traindx_tools.on_code import containers
from traindx_tools.on_code.answers import kept
from traindx_tools.on_code.binding import Binding
from traindx_tools.on_code.interpreter import Frame
from traindx_tools.on_code.source import SourceFile, below, next_arm
from traindx_tools.on_code.trace import Block
from traindx_tools.on_code.turns import changed
from traindx_tools.on_code.values import (
    NONE,
    UNKNOWN,
    Bag,
    Const,
    Instance,
    Symbol,
    Tensor,
    Thing,
    Value,
    join,
    truth,
)

MOST_NESTED = 30
"""Arms of `if ... elif ...` that are nested in each other as the tree has them; a longer chain is halved from there."""

_IN_PLACE = frozenset({"masked_fill_", "fill_", "copy_", "mul_", "add_", "sub_", "div_", "neg_", "clamp_", "zero_",
                       "index_fill_", "scatter_", "masked_scatter_", "uniform_", "normal_", "bernoulli_", "random_",
                       "exponential_", "detach_"})
"""Methods that set elements of the array they are called on, or cut it."""
_FILLING = frozenset({"fill_", "zero_", "uniform_", "normal_", "bernoulli_", "random_", "exponential_"})
"""Methods that set all of them, whatever they were before: what the array was a copy of says nothing any more."""


MOST_WITHIN = 2
"""Loops over a few objects inside each other that are followed once for each."""


class Statements(Binding):
    """Adds the statements to the interpreter."""

    def run_body(self, statements: list[ast.stmt], frame: Frame) -> None:
        """Execute statements in a frame."""
        self._body(statements, frame)

    def _body(self, statements: list[ast.stmt], frame: Frame) -> str:
        """Execute statements; how control leaves them: "" at the end, else "return", "raise", "break", "continue"."""
        for statement in statements:
            self.fuel -= 1
            handler = _HANDLERS.get(statement.__class__)
            left = handler(self, statement, frame) if handler is not None else None
            if left:
                return left
        return ""

    def _do_Expr(self, node: ast.Expr, frame: Frame) -> None:
        if isinstance(node.value, ast.Attribute):
            owner = self.evaluate(node.value.value, frame)
            found = self.attribute(owner, node.value.attr, node.value, frame)
            self.event("named", node.value.attr, node.value, frame, receiver=owner, args=(found,))
            return
        value = self.evaluate(node.value, frame) if not isinstance(node.value, ast.Constant) else None
        if isinstance(value, Thing) and value.type == "torch.set_grad_enabled":
            certain = not any(b.kind == "branch" for b in self.blocks)
            self.grad = truth(value.argument(0, "mode")) if certain else None
        call = node.value
        if isinstance(value, Tensor) and isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and (
                call.func.attr in _IN_PLACE):
            array = call.func.value
            array = array.value if isinstance(array, ast.Attribute) and array.attr == "data" else array
            filled = frame.env.get(array.id) if isinstance(array, ast.Name) else None
            if isinstance(array, ast.Name) and call.func.attr == "detach_":
                self.event("store", f"name.{array.id}", array, frame, args=(value, *([filled] if filled else [])))
                frame.env[array.id] = value
            elif isinstance(array, ast.Name) and isinstance(filled, Tensor):
                filled = filled.plain(axes=filled.axes) if call.func.attr in _FILLING else filled
                frame.env[array.id] = replace(filled, low=value.low, high=value.high)

    def _do_Return(self, node: ast.Return, frame: Frame) -> str:
        frame.returns.append(self.evaluate(node.value, frame) if node.value else NONE)
        return "return"

    def _do_Raise(self, node: ast.Raise, frame: Frame) -> str:
        if node.exc is not None:
            self.evaluate(node.exc, frame)
        return "raise"

    def _do_Break(self, node: ast.Break, frame: Frame) -> str:
        return "break"

    def _do_Continue(self, node: ast.Continue, frame: Frame) -> str:
        return "continue"

    def _do_Global(self, node: ast.Global, frame: Frame) -> None:
        frame.globals_.update(node.names)

    def _do_Nonlocal(self, node: ast.Nonlocal, frame: Frame) -> None:
        frame.outer.update(node.names)

    def _do_Assert(self, node: ast.Assert, frame: Frame) -> None:
        self.evaluate(node.test, frame)

    def _do_Delete(self, node: ast.Delete, frame: Frame) -> None:
        for target in node.targets:
            inner = target.value if isinstance(target, (ast.Subscript, ast.Attribute)) else target
            value = self.evaluate(inner, frame)
            name = f"delete.{target.attr}" if isinstance(target, ast.Attribute) else "delete.item"
            self.event("delete", name, node, frame, receiver=value)

    def _do_If(self, node: ast.If, frame: Frame, arms: int = 0) -> str:
        """`arms`: how many of the same chain came before."""
        test = self.evaluate(node.test, frame)
        while truth(test) is False and (arm := next_arm(node)) is not None:
            self.fuel -= 1
            node, test = arm, self.evaluate(arm.test, frame)
        known = truth(test)
        if known is not None:
            return self._body(node.body if known else node.orelse, frame)
        before = dict(frame.env)
        left = self._branch(node.body, test, node, frame)
        taken, frame.env = dict(frame.env), _restored(frame, before)
        arm = next_arm(node)
        if arm is None:
            other = self._branch(node.orelse, test, node, frame, is_other=True)
        else:
            with self.in_branch(node, test, frame, is_other=True) as block:
                self.fuel -= 1
                follow = self._do_If if arms < MOST_NESTED else self._long_chain
                other = block.left = follow(arm, frame, arms + 1)
        return _either(taken, left, other, frame)

    def _long_chain(self, node: ast.If, frame: Frame, _: int) -> str:
        """The arms of a long chain from here on, halved into branches of branches, so that none lies deep."""
        arms = [node]
        while (arm := next_arm(arms[-1])) is not None:
            arms.append(arm)
        taken: list[tuple[dict[str, Value], str]] = []
        ends: list[str] = []  # how the arm that is certainly taken is left, once one is

        def follow(first: int, last: int) -> None:
            if ends:
                return
            if last - first == 1:
                self._arm(arms[first] if first < len(arms) else arms[-1].orelse, arms[-1], taken, ends, frame)
                return
            both = ast.copy_location(ast.If(ast.Constant(...), [], []), arms[first])
            for start, stop in ((first, (first + last) // 2), ((first + last) // 2, last)):
                with self.in_branch(both, UNKNOWN, frame):
                    follow(start, stop)

        follow(0, len(arms) + 1)
        other = ends[0] if ends else ""
        for names, left in reversed(taken):
            other = _either(names, left, other, frame)
        return other

    def _arm(self, arm: ast.If | list[ast.stmt], last: ast.If, taken: list[tuple[dict[str, Value], str]],
             ends: list[str], frame: Frame) -> None:  # fmt: skip
        """One arm of a chain, or its `else`."""
        if isinstance(arm, list):
            ends.append(self._branch(arm, UNKNOWN, last, frame))
            return
        self.fuel -= 1
        test = self.evaluate(arm.test, frame)
        if truth(test) is True:
            ends.append(self._body(arm.body, frame))
        elif truth(test) is None:
            before = dict(frame.env)
            left = self._branch(arm.body, test, arm, frame)
            taken.append((dict(frame.env), left))
            frame.env = _restored(frame, before)

    def _branch(self, statements: list[ast.stmt], test: Value, node: ast.AST, frame: Frame,
                is_other: bool = False) -> str:
        if not statements:
            return ""
        with self.in_branch(node, test, frame, is_other) as block:
            block.left = self._body(statements, frame) or ""
        return block.left

    def _do_For(self, node: ast.For | ast.AsyncFor, frame: Frame) -> str:
        iterable = self.evaluate(node.iter, frame)
        each = containers.each_apart(iterable) if self.within_each < MOST_WITHIN else None
        if each is not None:
            return self._one_by_one(node, each, frame)
        block = self.iterate(node.target, iterable, node, frame)
        return self._loop(block, node.body, node.orelse, frame)

    def _one_by_one(self, node: ast.For | ast.AsyncFor, each: list[Value], frame: Frame) -> str:
        """A loop over a few objects, followed once for each: `for o in (opt_g, opt_d): o.zero_grad()`."""
        left = ""
        self.within_each += 1
        for item in each:
            self.assign(node.target, item, frame)
            left = self._body(node.body, frame)
            if left in ("return", "raise", "break"):
                break
        self.within_each -= 1
        return self._body(node.orelse, frame) if left in ("", "continue") else left if left != "break" else ""

    _do_AsyncFor = _do_For

    def _do_While(self, node: ast.While, frame: Frame) -> str:
        block = Block("loop", node, frame.file, frame.function)
        self.blocks[-1].body.append(block)
        block.subject = self.evaluate(node.test, frame)
        return self._loop(block, node.body, node.orelse, frame)

    def _loop(self, block: Block, body: list[ast.stmt], orelse: list[ast.stmt], frame: Frame) -> str:
        outer, inner = self.loops, frame.loops
        for name in _bound_in(block.file, block.node):
            before = frame.env.get(name)
            if isinstance(before, Const) and before.fixed:
                counts = type(before.value) is int and name in _counted_in(block.file, block.node)
                frame.env[name] = (Symbol("index", name) if counts else
                                   Const(before.value, fixed=False))  # in the next turn it is something else
        self.blocks.append(block)
        self.loops, frame.loops = (*outer, block), (*inner, block)
        held = {n: v for n in _bound_in(block.file, block.node) if (v := frame.env.get(n)) is not None}
        left = self._body(body, frame)
        unsure: set[int] = set()
        anew = [p for n, v in held.items() for p in changed(v, frame.env.get(n), block, unsure=unsure)]
        still = unsure & set(map(id, frame.env.values()))  # another name holds it, which nothing has bound anew
        block.renewed += tuple(p for p in anew if id(p) not in still)
        self.blocks.pop()
        self.loops, frame.loops = outer, inner
        self._body(orelse, frame)
        return left if left == "return" and isinstance(block.node, ast.While) else ""

    def iterate(self, target: ast.expr, iterable: Value, node: ast.AST, frame: Frame) -> Block:
        """Open a loop block and bind its target."""
        count = iterable.state.get("count") if isinstance(iterable, Thing) and iterable.type == "range" else None
        subject = (iterable.args[0] if isinstance(iterable, Thing) and iterable.type == "enumerate" and iterable.args
            else iterable)
        if count is None and isinstance(subject, Thing) and subject.type == "range":
            count = subject.state.get("count")
        block = Block("loop", node, frame.file, frame.function, subject=subject, count=count)
        self.blocks[-1].body.append(block)
        outer, inner = self.loops, frame.loops
        self.blocks.append(block)
        self.loops, frame.loops = (*outer, block), (*inner, block)
        item = self.element(iterable, node, frame)
        block.renewed = (item, *(item.items if isinstance(item, Bag) else ()))
        self.assign(target, item, frame)
        self.blocks.pop()
        self.loops, frame.loops = outer, inner
        return block

    def _do_Try(self, node: ast.Try, frame: Frame) -> str:
        left = self._body(node.body, frame)
        after = dict(frame.env)
        for handler in node.handlers:
            frame.env = _restored(frame, dict(after))
            if handler.name:
                frame.env[handler.name] = UNKNOWN
            self._branch(handler.body, UNKNOWN, handler, frame)
        frame.env = _restored(frame, after)
        if not left:
            left = self._body(node.orelse, frame)
        return self._body(node.finalbody, frame) or left

    _do_TryStar = _do_Try

    def _do_With(self, node: ast.With | ast.AsyncWith, frame: Frame) -> str:
        saved = (self.grad, self.autocast)
        depth = len(self.blocks)
        entered: list[Instance] = []
        for item in node.items:
            given = value = self.evaluate(item.context_expr, frame)
            if isinstance(given, Instance) and given.klass.info.method("__enter__") is not None:
                entered.append(given)
                value = self.call_attribute(given, "__enter__", [], {}, node, frame)
            block = Block("with", node, frame.file, frame.function, subject=value)
            self.blocks[-1].body.append(block)
            self.blocks.append(block)
            self._enter(value)
            if item.optional_vars is not None:
                self.assign(item.optional_vars, self._entered(value), frame)
        left = self._body(node.body, frame)
        del self.blocks[depth:]
        self.grad, self.autocast = saved
        for manager in reversed(entered):
            self.call_attribute(manager, "__exit__", [NONE, NONE, NONE], {}, node, frame)
        return left

    _do_AsyncWith = _do_With

    def _enter(self, value: Value) -> None:
        from traindx_tools.on_code.tensors import dtype_of

        if isinstance(value, Bag) and value.kind == "generator":
            self.grad = False if value.suspends_grad else self.grad
            return
        if isinstance(value, (Symbol, Const)) or not isinstance(value, Thing):
            return
        if value.type in _NO_GRAD:
            self.grad = False
        elif value.type == "torch.enable_grad":
            self.grad = True
        elif value.type == "torch.set_grad_enabled":
            self.grad = truth(value.argument(0, "mode"))
        elif value.type == "torch.amp.autocast":
            if truth(value.kwargs.get("enabled")) is False:
                self.autocast = None
                return
            named = [dtype_of(a) for a in (*value.args, *value.kwargs.values())]
            self.autocast = next((d for d in named if d), "float16")

    def _entered(self, value: Value) -> Value:
        if isinstance(value, Bag) and value.kind == "generator":
            return containers.joined(value.items)
        return value if isinstance(value, (Thing, Instance)) else UNKNOWN

    def _do_Match(self, node: ast.Match, frame: Frame) -> None:
        subject = self.evaluate(node.subject, frame)
        for case in node.cases:
            before = dict(frame.env)
            self._branch(case.body, subject, case.pattern, frame)
            taken, frame.env = dict(frame.env), _restored(frame, before)
            _merge(taken, frame.env)


_HANDLERS: dict[type[ast.AST], Callable[[Any, Any, Frame], str | None]] = {kind: getattr(Statements, f"_do_{name}")
    for name, kind in vars(ast).items() if isinstance(kind, type) and hasattr(Statements, f"_do_{name}")}
"""For each kind of statement its method."""
_NO_GRAD = ("torch.no_grad", "torch.inference_mode")


@kept
def _bound_in(file: SourceFile, loop: ast.AST) -> set[str]:
    """The names that a loop's body binds anew, its target aside."""
    body = [*loop.body, *loop.orelse] if isinstance(loop, (ast.For, ast.AsyncFor, ast.While)) else []
    return {n.id for s in body for n in below(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


@kept
def _counted_in(file: SourceFile, loop: ast.AST) -> set[str]:
    """The names to which a loop's body adds 1."""
    return {n.target.id for n in below(loop) if isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name)
            and isinstance(n.op, ast.Add) and isinstance(n.value, ast.Constant) and n.value.value == 1}


def _restored(frame: Frame, env: dict[str, Value]) -> dict[str, Value]:
    """Put these names back; a module's body keeps its own dict, which others hold."""
    if frame.function is None:
        frame.env.clear()
        frame.env.update(env)
        return frame.env
    return env


def _either(taken: dict[str, Value], left: str, other: str, frame: Frame) -> str:
    """How an `if` is left of which one side bound these names and the other side has just run."""
    if left and other:
        return left if left == other else "return" if {left, other} <= {"return", "raise"} else left
    if left:
        return ""
    if not other:
        _merge(taken, frame.env)
    else:
        frame.env.clear()
        frame.env.update(taken)
    return ""


def _merge(taken: dict[str, Value], env: dict[str, Value]) -> None:
    """Names after an `if`: joined where both branches bind them."""
    for name, value in taken.items():
        other = env.get(name)
        env[name] = value if other is None or other is value else join(value, other)
