"""Where statements are put or moved, and where an optimizer, a wrapper or a module holds what is trained.

A place gives the nodes that change, each with a text of its own (of a move: its target) or alone.
"""

from __future__ import annotations

import ast
import re
from typing import Any

from traindx_tools.edits.place import Place, Side, call_of, owner_of, target_of
from traindx_tools.edits.source_edit import source_of, sure
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import FunctionNode, argument, last_name, syntax, written

_PREPARES = frozenset({"clip_grad_norm_", "clip_grad_value_", "unscale_"})
"""What belongs between backward and step."""


def statement(p: Place) -> Any:
    """The statement of it, in the function of the target."""
    sure(p.event.file is p.target.event.file and p.event.function is p.target.event.function)
    return p.statement


def statement_alone(p: Place) -> Any:
    """The one statement of its block that calls this method of this object."""
    sure(sum(f"{written(p.call.func)}(" in written(s) for s in p.block) == 1)
    return p.statement


def both(p: Place) -> Any:
    """A statement that is moved, and where."""
    p.in_one_file()
    sure(isinstance(p.statement, (ast.Expr, ast.Assign)))
    return p.statement, p.target.statement


def beside(p: Place) -> Any:
    """Both, of one block."""
    found = both(p)
    sure(p.block is p.target.block)
    return found


def _stepped(p: Place, step: Side) -> Any:
    """A step, and the optimizer that it moves: the receiver, or what a scaler is given."""
    optimizer = step.call.args[0] if step.call.args else owner_of(step.call)
    sure(isinstance(optimizer, (ast.Name, ast.Attribute)))
    often = "after every step" if p.text == "window" else "in every iteration"
    p.names |= {"optimizer": written(optimizer), "how_often": often}
    return step.statement


def step(p: Place) -> Any:
    """A step."""
    return _stepped(p, p)


def clearing(p: Place) -> Any:
    """A step, behind which gradients are cleared that were cleared too early; a comment there goes along."""
    p.in_one_file()
    sure(isinstance(p.statement, ast.Expr) and p.statement.lineno == p.statement.end_lineno)
    p.gone = (p.statement,)
    p.names["comment"] = p.file.line(p.statement.lineno).encode()[p.statement.end_col_offset :].decode()
    return _stepped(p, p.target)


def backward(p: Place) -> Any:
    """The backward pass in the block of a step that no window skips."""
    p.in_one_file()
    sure(_stepped(p, p) and p.text != "window" and p.block is p.target.block)
    return p.target.statement


def _prepared(backward: Side) -> ast.stmt:
    """The last of the statements right behind backward that prepare the gradients."""
    last, block = backward.statement, backward.block
    for one in block[block.index(last) + 1 :]:
        calls = {last_name(n.func) for n in below(one) if isinstance(n, ast.Call)}
        if not calls & _PREPARES or not isinstance(one, (ast.Expr, ast.Assign)):
            break
        last = one
    return last  # type: ignore[no-any-return]


def prepared(p: Place) -> Any:
    """A statement that is moved behind backward and what prepares the gradients; "nested": out of another block."""
    p.in_one_file()
    nested = p.text == "nested"
    sure((p.block is not p.target.block) == nested and (isinstance(p.statement, ast.Expr) or not nested))
    p.names["moved"] = "step" if p.event.method == "step" else "clip"
    return p.statement, _prepared(p.target)


def unstepped(p: Place) -> Any:
    """Where the step is missing."""
    text = written(p.statement)
    sure("scale(" not in text and "=" not in text.partition("(")[0] and re.fullmatch(r"[\w.]+", p.text))
    return _prepared(p)


def _loop(p: Place, side: Side) -> Any:
    found = next((x for x in side.code.loops(side.node) if str(getattr(x, "lineno", 0)) == p.text), None)
    sure(isinstance(found, (ast.For, ast.While)))
    return found


def made_in_loop(p: Place) -> Any:
    """What is made anew in every iteration, and the loop."""
    sure(isinstance(p.statement, ast.Assign))
    return p.statement, _loop(p, p)


def loop(p: Place) -> Any:
    """The loop around the target."""
    p.file = p.target.file
    return _loop(p, p.target)


def top_of_loop(p: Place) -> Any:
    """Its first statement."""
    return loop(p).body[0]


def guarded_step(p: Place) -> Any:
    """Step and update right behind a condition: the scaler leaves the step out by itself."""
    found, update = both(p)
    block = [ast.Pass(), *p.block]
    guard, *moved = block[block.index(found) - 1 :][:3]
    sure(isinstance(guard, ast.If) and moved == [found, update] and isinstance(update, ast.Expr))
    return [(found, guard), (update, guard)]


def evaluation(p: Place) -> Any:
    """A block without gradients; train() belongs behind it where it does not stand there already."""
    suspends = re.compile(r"no_grad|inference_mode|set_grad_enabled\(False\)")
    region = next((a for a in p.code.above(p.node) if isinstance(a, ast.With)
                   and suspends.search(written(a.items[0].context_expr))), ast.Pass())  # fmt: skip
    sure(p.code.block(region) and p.code.scope(region) is p.code.scope(p.node))
    sure(not any(isinstance(n, (ast.Return, ast.Break, ast.Continue, ast.Yield)) for n in below(region)))
    block, again = [*p.code.block(region), ast.Pass()], f"{p.called}.train()"
    p.names["again"] = "" if written(block[block.index(region) + 1]) == again else f"\n{again}"
    return region


def function(p: Place) -> Any:
    """The whole function around it, of a file that imports torch."""
    around: Any = p.event.function
    sure(around and isinstance(around.node, FunctionNode) and not around.node.decorator_list)
    p.file = around.file
    sure(p.code.aliases.get("torch") == "torch")
    sure(not any(p.code.inside(around.node, kind) for kind in (ast.Yield, ast.YieldFrom)))
    return around.node


def key_in_loop(p: Place) -> Any:
    """The key of the one call that draws from it in a loop with a counter."""
    p.file, use, around = p.origin
    over, index = getattr(around, "iter", None), getattr(around, "target", None)
    given = [a for a in (*use.args, *(k.value for k in use.keywords)) if isinstance(a, ast.Name)
             and ("key" in a.id.lower() or a.id in ("rng", "k"))]  # fmt: skip
    sure(len(given) == 1 and p.code.statement(use) in around.body)
    sure(len([n for s in around.body for n in below(s) if written(n) == given[0].id]) == 1)
    counts = written(call_of(over).func).rpartition(".")[2]
    index = index.elts[0] if counts == "enumerate" and isinstance(index, ast.Tuple) else index
    sure(counts in ("range", "trange", "enumerate") and isinstance(index, ast.Name) and index.id != "_")
    calls = (c.func for c in p.code.of(ast.Call) if p.code.qualified(c.func).startswith("jax.random."))
    module = next((written(f.value) for f in calls if isinstance(f, ast.Attribute)), "jax.random")
    sure(module != "jax.random" or p.code.aliases.get("jax") == "jax")
    p.names |= {"index": written(index), "random": module}
    return given[0]


def chosen_parameters(p: Place) -> Any:
    """The parameters that require a gradient, chosen: those that are frozen for now the optimizer passes over."""
    given = argument(p.call, 0, "params")
    chosen: Any = p.code.assigned(given) if isinstance(given, ast.Name) else given
    if isinstance(chosen, (ast.ListComp, ast.GeneratorExp)):
        one, name = chosen.generators[0], written(chosen.elt)
        sure([written(one.target), *map(written, one.ifs)] == [name, f"{name}.requires_grad"])
        inner = one.iter
    else:
        sure(last_name(call_of(chosen).func) == "filter")
        inner = chosen.args[1]
    sure(last_name(call_of(inner).func) == "parameters")
    return chosen, p.source(inner)


def parameters_held(p: Place) -> Any:
    """What an optimizer is built over: the parameters of one module, or a sum of lists."""
    given, names = argument(p.call, 0, "params"), p.text.split()
    sure(given and names and all(n.replace(".", "_").isidentifier() for n in names))
    sure(not any(f"{n}.parameters" in written(given) for n in names))
    p.names["modules"] = " and ".join(names)
    if isinstance(given, ast.BinOp):
        return given, "<>" + "".join(f" + list({n}.parameters())" for n in names)
    sure(last_name(call_of(given).func) == "parameters" and not call_of(given).args)
    return given, f"[*<>, {', '.join(f'*{n}.parameters()' for n in names)}]"


def assigning_load(p: Place) -> Any:
    """A load by assignment, unless the parameters hold nothing that could be copied into."""
    sure(argument(p.call, 99, "assign") and "meta" not in p.file.text and "mmap" not in p.source(p.call))
    return p.call


def freezing(p: Place) -> Any:
    """What freezes a whole model, with its loop, and the output layer."""
    head, home, p.file = p.origin
    sure(p.file and home)
    nodes: list[Any] = [*p.code.calls("requires_grad_"), *p.code.of(ast.Assign)]
    frozen: Any = next((n for n in nodes if n.lineno == p.at.line), None)
    around: Any = next((x for x in p.code.loops(frozen) if isinstance(x, ast.For)), None) if frozen else None
    owner = written(owner_of(call_of(frozen if around is None else around.iter)))
    sure(around is None or last_name(around.iter.func) in ("parameters", "named_parameters"))
    layer = target_of(syntax(home).statement(head.node))
    sure(isinstance(layer, ast.Attribute) and written(layer.value) in ("self", owner))
    p.names["layer"] = f"{owner}.{layer.attr}"
    return around or p.code.statement(frozen)


def thawing(p: Place) -> Any:
    """What unfreezes a part, and the wrapper again (`net = DDP(net.module)`), whose hooks cover what is trained now."""
    p.file, wrapper, one = p.target.file, p.target.call, p.statement
    sure(p.origin.file is p.file)
    target, around = target_of(p.target.statement), p.code.parent(one)
    near: Any = p.code.owner if isinstance(target, ast.Attribute) else p.code.scope
    sure(near(p.node) is near(wrapper) is not None and re.fullmatch(r"(self\.)?\w+", written(target)))
    text, first, name = p.source(wrapper), source_of(p.file, wrapper.args[0]), written(target)
    sure(text.startswith(f"{written(wrapper.func)}({first}") and "\n" not in text)
    sure(not any(written(other.value) == name for other in p.code.of(ast.Assign)))  # the old one would go on as that
    p.names |= {"name": name, "again": text.replace(f"({first}", f"({name}.module", 1)}
    return around if isinstance(around, ast.For) and around.body == [one] else one


def collection(p: Place) -> Any:
    """A list or dict of layers that a module keeps."""
    value, aliases = target_of(p.statement) and p.statement.value, p.code.aliases
    library = next((k for k, v in aliases.items() if v == "torch.nn"), "torch.nn" if "torch" in aliases else "")
    sure(library and isinstance(value, (ast.List, ast.ListComp, ast.Dict, ast.DictComp)) and written(value) != "[]")
    p.names["kind"] = f"{library}.Module{'Dict' if 'Dict' in type(value).__name__ else 'List'}"
    return value
