"""What an expression of training code stands for: the loss, the learning rate, the norm of the gradients, a counter.

Worked out on the syntax tree alone, by what is done with a value: what `backward()` is called on or `value_and_grad`
returns is the loss; what is read from or written to `param_groups[...]["lr"]` is the learning rate; what
`clip_grad_norm_` returns is the norm of the gradients. Averages, sums, `.item()`, roundings and accumulators of a value
keep its meaning. Names say nothing here, except that a function called "evaluate" evaluates.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from traindx_tools.on_code.nodes import last_name
from traindx_tools.printed_values.expressions import (
    addends_of,
    compares_answers,
    constant,
    function_name,
    key_of,
    trains,
    unscaled,
)
from traindx_tools.printed_values.roles import (
    ACCURACY,
    BACKENDS,
    CARRY,
    COUNT,
    EPOCH,
    EVALUATES,
    GATHERS,
    HITS,
    LOSS,
    LOSS_CALL,
    MEASURED,
    NORM,
    NORM_CALLS,
    RATE,
    RATE_CALLS,
    SCALE,
    SCHEDULES,
    STEP,
    TERM,
    TRAINING_DATA,
    WITHOUT_GRADIENTS,
    WRAP,
    Meaning,
)

_DEPTH = 12
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass
class Scope:
    """A function or the module: what is assigned in it, what it returns, and whether it evaluates."""

    node: ast.AST
    parent: Scope | None
    evaluates: bool = False
    assigned: dict[str, list[tuple[ast.expr, int | None, bool]]] = field(default_factory=dict)
    """Values by name (or dotted text), with the place in a tuple, and whether that happens without gradients."""
    returns: list[ast.expr] = field(default_factory=list)
    facts: dict[str, Meaning] = field(default_factory=dict)
    """Names whose meaning is known from what is done with them."""


class Meanings:
    """The meanings of one file. `scope_of` gives the scope in which a node stands."""

    def __init__(self, tree: ast.Module) -> None:
        self.module = Scope(tree, None)
        self.scope_of: dict[ast.AST, Scope] = {}
        self._functions: dict[str, Scope] = {}
        self._models = {
            key_of(n.func.value)
            for n in ast.walk(tree)
            if isinstance(n, ast.Call)
            and isinstance(n.func, ast.Attribute)
            and n.func.attr in ("parameters", "eval", "named_parameters")
        } - {None}
        self._rate_functions: set[str] = set()
        self._gradient_functions: set[str] = set()
        self._loss_functions: set[str] = set()
        self._collect(tree, self.module, without_gradients=False)
        for node, scope in list(self.scope_of.items()):
            self._note(node, scope)

    def _collect(self, node: ast.AST, scope: Scope, without_gradients: bool) -> None:
        self.scope_of[node] = scope
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            inner = Scope(node, scope, evaluates=self._is_evaluation(node))
            self._functions[node.name] = inner
            for child in ast.iter_child_nodes(node):
                self._collect(child, inner, without_gradients=False)
            return
        if isinstance(node, (ast.With, ast.AsyncWith)):
            without_gradients = without_gradients or self._evaluates(node)
        self._assignments(node, scope, without_gradients)
        if isinstance(node, ast.Return) and node.value is not None:
            scope.returns.append(node.value)
        for child in ast.iter_child_nodes(node):
            self._collect(child, scope, without_gradients)

    def _is_evaluation(self, node: Function) -> bool:
        calls = {last_name(n.func) for n in ast.walk(node) if isinstance(n, ast.Call)}
        if calls & {"backward", "manual_backward", "value_and_grad"}:
            return False
        named = EVALUATES.search(node.name) is not None and not node.name.startswith("training")
        return named or "eval" in calls

    def _evaluates(self, node: ast.With | ast.AsyncWith) -> bool:
        """Whether a block runs a model without gradients."""
        if not any(
            last_name(i.context_expr.func) in WITHOUT_GRADIENTS
            for i in node.items
            if isinstance(i.context_expr, ast.Call)
        ):
            return False
        calls = [n for n in ast.walk(node) if isinstance(n, ast.Call)]
        return any(key_of(c.func) in self._models for c in calls)

    def _assignments(self, node: ast.AST, scope: Scope, without_gradients: bool) -> None:
        def put(target: ast.expr, value: ast.expr, place: int | None = None) -> None:
            if isinstance(target, ast.Starred):
                return
            if isinstance(target, (ast.Tuple, ast.List)):
                pairs = isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts)
                for i, part in enumerate(target.elts):
                    put(
                        part,
                        value.elts[i] if pairs and isinstance(value, (ast.Tuple, ast.List)) else value,
                        None if pairs else place if place is not None else i,
                    )
                return
            key = key_of(target)
            if key is not None:
                home = self.module if "." in key else scope
                home.assigned.setdefault(key, []).append((value, place, without_gradients))

        if isinstance(node, ast.Assign):
            for target in node.targets:
                put(target, node.value)
        elif isinstance(node, (ast.AnnAssign, ast.AugAssign, ast.NamedExpr)) and node.value is not None:
            put(node.target, node.value)
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in GATHERS
            and node.args
        ):
            put(node.func.value, node.args[0])
        elif isinstance(node, (ast.For, ast.AsyncFor)):
            self._counters(node, scope)

    def _counters(self, node: ast.For | ast.AsyncFor, scope: Scope) -> None:
        called = last_name(node.iter.func) if isinstance(node.iter, ast.Call) else ""
        target: ast.expr | None = node.target if called in ("range", "trange") else None
        if called == "enumerate" and isinstance(node.target, ast.Tuple):
            target = node.target.elts[0]
        key = key_of(target) if target is not None else None
        if key is None:
            return
        inner = any(isinstance(n, (ast.For, ast.While)) and n is not node and trains(n) for n in ast.walk(node))
        if trains(node):
            scope.facts[key] = Meaning(EPOCH if inner else STEP)

    def _note(self, node: ast.AST, scope: Scope) -> None:
        """What is done with a value tells what it is."""
        if isinstance(node, ast.Call):
            self._note_call(node, scope)
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Subscript) and constant(target.slice) in ("lr", "learning_rate"):
                    self._note_rate(node.value, scope)
            if isinstance(node.value, ast.Call):
                self._note_made(node.targets[0], node.value)
        elif isinstance(node, ast.Return) and node.value is not None and function_name(scope.node) == "training_step":
            value = node.value
            if isinstance(value, ast.Dict):
                value = next(
                    (v for k, v in zip(value.keys, value.values, strict=True) if constant(k) == "loss"), value
                )
            self._note_loss(value, scope)

    def _note_call(self, node: ast.Call, scope: Scope) -> None:
        name = last_name(node.func)
        if name in ("backward", "manual_backward") and isinstance(node.func, ast.Attribute):
            owner = last_name(node.func.value)
            given = bool(node.args) and (owner in BACKENDS or name == "manual_backward" or "engine" in owner)
            self._note_loss(node.args[0] if given else node.func.value, scope)
        elif name == "gradient" and node.args and "tape" in ast.unparse(node.func).lower():
            self._note_loss(node.args[0], scope)
        for keyword in node.keywords:
            if keyword.arg in ("lr", "learning_rate"):
                self._note_rate(keyword.value, scope)

    def _note_made(self, target: ast.expr, value: ast.Call) -> None:
        key, name = key_of(target), last_name(value.func)
        if key is None:
            return
        if name in ("value_and_grad", "jit", "filter_value_and_grad", "pmap", "filter_jit") and any(
            last_name(n.func) in ("value_and_grad", "filter_value_and_grad")
            for n in ast.walk(value)
            if isinstance(n, ast.Call)
        ):
            self._gradient_functions.add(key)
        if SCHEDULES.fullmatch(name) and "get_" not in name:
            self._rate_functions.add(key)
        if re.fullmatch(r"\w*Loss", name):
            self._loss_functions.add(key)

    def _note_rate(self, value: ast.expr, scope: Scope) -> None:
        if isinstance(value, ast.Call) and (called := key_of(value.func)) is not None:
            self._rate_functions.add(called)
        elif (key := key_of(value)) is not None and (
            key in scope.assigned or "." in key or scope.parent is None or key in self.module.assigned
        ):
            (self.module if "." in key else scope).facts.setdefault(key, Meaning(RATE))
            if key in self._rate_functions:
                return

    def _note_loss(self, value: ast.expr, scope: Scope) -> None:
        """The value whose gradient is taken is the loss; what is added up to it are its terms."""
        value = unscaled(value)
        key = key_of(value)
        if key is not None:
            home = self.module if "." in key else scope
            home.facts[key] = Meaning(LOSS)
            for assigned, _, _ in self._assigned(key, scope):
                self._note_terms(unscaled(assigned), scope, key)
        else:
            self._note_terms(value, scope, "")

    def _note_terms(self, value: ast.expr, scope: Scope, total: str) -> None:
        if isinstance(value, ast.Call) and (called := key_of(value.func)) is not None:
            self._loss_functions.add(called)
        addends = list(addends_of(value))
        if len(addends) < 2:
            inner = key_of(unscaled(value))
            if inner is not None and inner != total:
                scope.facts.setdefault(inner, Meaning(LOSS))
            return
        for addend in addends:
            part = key_of(unscaled(addend))
            if part is not None and part != total:
                scope.facts.setdefault(part, Meaning(TERM))

    def _assigned(self, key: str, scope: Scope | None) -> Iterator[tuple[ast.expr, int | None, bool]]:
        while scope is not None:
            if key in scope.assigned:
                yield from scope.assigned[key]
                return
            scope = scope.parent
        yield from self.module.assigned.get(key, ())

    def of(self, node: ast.expr, scope: Scope, depth: int = _DEPTH) -> Meaning | None:
        """The meaning of an expression in a scope, None where it is not certain."""
        if depth <= 0:
            return None
        if isinstance(node, (ast.Name, ast.Attribute)):
            return self._of_variable(node, scope, depth)
        if isinstance(node, ast.Call):
            return self._of_call(node, scope, depth)
        if isinstance(node, ast.Subscript):
            return self._of_subscript(node, scope, depth)
        if isinstance(node, ast.BinOp):
            return self._of_operation(node, scope, depth)
        if isinstance(node, ast.IfExp):
            return self.of(node.body, scope, depth - 1) or self.of(node.orelse, scope, depth - 1)
        if isinstance(node, ast.JoinedStr):
            values = [v.value for v in node.values if isinstance(v, ast.FormattedValue)]
            return self.of(values[0], scope, depth - 1) if len(values) == 1 else None
        if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
            return self.of(node.elt, scope, depth - 1)
        if isinstance(node, ast.UnaryOp):
            return None if isinstance(node.op, ast.USub) else self.of(node.operand, scope, depth - 1)
        return None

    def _of_variable(self, node: ast.Name | ast.Attribute, scope: Scope, depth: int) -> Meaning | None:
        key = key_of(node)
        here: Scope | None = scope
        while key is not None and here is not None:
            if key in here.facts:
                fact = here.facts[key]
                return replace(fact, held_out=fact.held_out or (scope.evaluates and fact.role in MEASURED))
            if key in here.assigned and here is not self.module:
                break
            here = here.parent
        if key is not None:
            for value, place, without in self._assigned(key, scope):
                found = self._of_place(value, place, scope, depth - 1)
                if found is not None:
                    held_out = found.held_out or ((without or scope.evaluates) and found.role in MEASURED)
                    return replace(found, held_out=held_out)
        if isinstance(node, ast.Attribute) and node.attr in CARRY:
            return self.of(node.value, scope, depth - 1)
        return None

    def _of_place(self, value: ast.expr, place: int | None, scope: Scope, depth: int) -> Meaning | None:
        """The meaning of one element of what a call returns."""
        if place is None:
            return self.of(value, scope, depth)
        if not isinstance(value, ast.Call):
            return None
        if self._takes_gradient(value):
            return Meaning(LOSS) if place == 0 else None
        return self._of_return(value, place, scope, depth)

    def _takes_gradient(self, value: ast.Call) -> bool:
        if isinstance(value.func, ast.Call):
            return last_name(value.func.func) in ("value_and_grad", "filter_value_and_grad")
        return key_of(value.func) in self._gradient_functions

    def _of_return(self, call: ast.Call, place: int | None, scope: Scope, depth: int) -> Meaning | None:
        function = self._functions.get(last_name(call.func))
        if function is None or function is scope:
            return None
        given = " ".join(ast.unparse(a) for a in call.args)
        for value in function.returns:
            if place is not None and isinstance(value, ast.Tuple):
                value = value.elts[place] if place < len(value.elts) else value
            found = self.of(value, function, depth - 1)
            if found is not None:
                held_out = (found.held_out or function.evaluates) and found.role in MEASURED
                return replace(found, held_out=held_out and not TRAINING_DATA.search(given))
        return None

    def _of_call(self, node: ast.Call, scope: Scope, depth: int) -> Meaning | None:
        name, key = last_name(node.func), key_of(node.func)
        if name in RATE_CALLS or key in self._rate_functions:
            return Meaning(RATE)
        if name in NORM_CALLS:
            return Meaning(NORM)
        if name == "get_scale":
            return Meaning(SCALE)
        if (key in self._loss_functions and key is not None) or (LOSS_CALL.fullmatch(name) and node.args):
            return Meaning(LOSS, scope.evaluates)
        if isinstance(node.func, ast.Attribute) and name in CARRY:
            compared = compares_answers(node.func.value)
            if compared and name in ("sum", "mean"):
                return Meaning(HITS if name == "sum" else ACCURACY, scope.evaluates)
            found = self.of(node.func.value, scope, depth - 1)
            if found is not None:
                return found
        if name in WRAP and node.args:
            if compares_answers(node.args[0]) and name in ("sum", "mean"):
                return Meaning(HITS if name == "sum" else ACCURACY, scope.evaluates)
            return self.of(node.args[0], scope, depth - 1)
        return self._of_return(node, None, scope, depth)

    def _of_subscript(self, node: ast.Subscript, scope: Scope, depth: int) -> Meaning | None:
        key = constant(node.slice)
        if key in ("lr", "learning_rate") and re.search(
            r"group|optim|\bopt\b|hyperparams|\bg\b|\bpg\b|param", ast.unparse(node.value)
        ):
            return Meaning(RATE)
        if isinstance(key, str):
            own = key_of(node)
            if own is not None:
                for value, _, _ in self._assigned(own, scope):
                    if (found := self.of(value, scope, depth - 1)) is not None:
                        return found
            return None
        return self.of(node.value, scope, depth - 1)

    def _of_operation(self, node: ast.BinOp, scope: Scope, depth: int) -> Meaning | None:
        left = self.of(node.left, scope, depth - 1)
        if isinstance(node.op, (ast.Div, ast.FloorDiv)):
            return replace(left, role=ACCURACY) if left is not None and left.role == HITS else left
        if isinstance(node.op, (ast.Mult, ast.Add, ast.Sub)):
            found = left or self.of(node.right, scope, depth - 1)
            return None if found is not None and isinstance(node.op, ast.Sub) and found.role not in COUNT else found
        return None
