"""Where statements are put or moved, and where an optimizer, a wrapper or a module holds what is trained."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from typing import Any

from traindx_tools.edits.place import At, at, call_of, event_of, owner_of, statement_of, target_of
from traindx_tools.edits.source_edit import source_of, sure
from traindx_tools.invariants.breach import Remedy
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import FunctionNode, argument, last_name, syntax, written
from traindx_tools.on_code.trace import Event

_PREPARES = frozenset({"clip_grad_norm_", "clip_grad_value_", "unscale_"})
"""What belongs between backward and step."""


def statement(remedy: Remedy) -> At:
    """The statement of it, in the function of the target."""
    event, other = event_of(remedy.act), event_of(remedy.target)
    sure(event.file is other.file and event.function is other.function)
    return at(event.file, statement_of(event))


def statement_alone(remedy: Remedy) -> At:
    """The one statement of its block that calls this method of this object."""
    event = event_of(remedy.act)
    called = f"{written(call_of(event.node).func)}("
    sure(sum(called in written(s) for s in syntax(event.file).block(statement_of(event))) == 1)
    return at(event.file, statement_of(event))


def both(remedy: Remedy) -> At:
    """A statement that is moved, and where."""
    event, other = event_of(remedy.act), event_of(remedy.target)
    sure(event.file is other.file and isinstance(statement_of(event), (ast.Expr, ast.Assign)))
    return at(event.file, (statement_of(event), statement_of(other)))


def clearing(remedy: Remedy) -> At:
    """A step, behind which gradients are cleared that were cleared too early."""
    clear, found = event_of(remedy.act), event_of(remedy.target)
    early = statement_of(clear)
    sure(clear.file is found.file and isinstance(early, ast.Expr) and early.lineno == early.end_lineno)
    return replace(step(Remedy(remedy.kind, remedy.target or remedy.act)), gone=(early,))


def beside(remedy: Remedy) -> At:
    """Both, of one block."""
    found = both(remedy)
    sure(len({id(syntax(found.file).block(s)) for s in found.nodes[0]}) == 1)
    return found


def step(remedy: Remedy) -> At:
    """A step, and the optimizer that it moves: the receiver, or what a scaler is given."""
    event = event_of(remedy.act)
    call = call_of(event.node)
    optimizer = call.args[0] if call.args else owner_of(call)
    sure(isinstance(optimizer, (ast.Name, ast.Attribute)))
    often = "after every step" if remedy.text == "window" else "in every iteration"
    return at(event.file, statement_of(event), optimizer=written(optimizer), how_often=often)


def backward(remedy: Remedy) -> At:
    """The backward pass in the block of a step that no window skips."""
    found, sent = step(remedy), event_of(remedy.target)
    sure(remedy.text != "window" and found.file is sent.file)
    sure(syntax(sent.file).block(statement_of(sent)) is syntax(sent.file).block(found.nodes[0][0]))
    return at(sent.file, statement_of(sent), **found.names)


def _prepared(event: Event) -> ast.stmt:
    """The last of the statements right behind backward that prepare the gradients."""
    last = statement_of(event)
    block = syntax(event.file).block(last)
    for one in block[block.index(last) + 1 :]:
        calls = {last_name(n.func) for n in below(one) if isinstance(n, ast.Call)}
        if not calls & _PREPARES or not isinstance(one, (ast.Expr, ast.Assign)):
            break
        last = one
    return last


def prepared(remedy: Remedy) -> At:
    """A statement that is moved behind backward and what prepares the gradients; "nested": out of another block."""
    moved, sent = event_of(remedy.act), event_of(remedy.target)
    code, one = syntax(moved.file), statement_of(moved)
    nested, apart = remedy.text == "nested", code.block(one) is not code.block(statement_of(sent))
    sure(moved.file is sent.file and nested == apart and (isinstance(one, ast.Expr) or not nested))
    return at(moved.file, (one, _prepared(sent)), moved="step" if moved.method == "step" else "clip")


def unstepped(remedy: Remedy) -> At:
    """Where the step is missing."""
    sent = event_of(remedy.act)
    text = written(statement_of(sent))
    sure("scale(" not in text and "=" not in text.partition("(")[0] and re.fullmatch(r"[\w.]+", remedy.text))
    return at(sent.file, _prepared(sent))




def _loop(event: Event, line: str) -> Any:
    found = next((x for x in syntax(event.file).loops(event.node) if str(getattr(x, "lineno", 0)) == line), None)
    sure(isinstance(found, (ast.For, ast.While)))
    return found



def made_in_loop(remedy: Remedy) -> At:
    """What is made anew in every iteration, and the loop."""
    made = event_of(remedy.act)
    sure(isinstance(statement_of(made), ast.Assign))
    return at(made.file, (statement_of(made), _loop(made, remedy.text)))


def loop(remedy: Remedy) -> At:
    """The loop around the target."""
    forward = event_of(remedy.target)
    return at(forward.file, _loop(forward, remedy.text))


def top_of_loop(remedy: Remedy) -> At:
    """Its first statement."""
    forward = event_of(remedy.target)
    return at(forward.file, _loop(forward, remedy.text).body[0])


def guarded_step(remedy: Remedy) -> At:
    """Step and update right behind a condition: the scaler leaves the step out by itself."""
    ((found, update),) = both(remedy).nodes
    event = event_of(remedy.act)
    block = [ast.Pass(), *syntax(event.file).block(found)]
    guard, *moved = block[block.index(found) - 1 :][:3]
    sure(isinstance(guard, ast.If) and moved == [found, update] and isinstance(update, ast.Expr))
    return at(event.file, (found, guard), (update, guard))


def evaluation(remedy: Remedy) -> At:
    """A block without gradients; train() belongs behind it where it does not stand there already."""
    called = event_of(remedy.act)
    code, suspends = syntax(called.file), re.compile(r"no_grad|inference_mode|set_grad_enabled\(False\)")
    region = next((a for a in code.above(called.node) if isinstance(a, ast.With)
                   and suspends.search(written(a.items[0].context_expr))), ast.Pass())  # fmt: skip
    sure(code.block(region) and code.scope(region) is code.scope(called.node))
    sure(not any(isinstance(n, (ast.Return, ast.Break, ast.Continue, ast.Yield)) for n in below(region)))
    block, again = [*code.block(region), ast.Pass()], f"{written(call_of(called.node).func)}.train()"
    is_told = written(block[block.index(region) + 1]) == again
    return at(called.file, region, again="" if is_told else f"\n{again}")


def function(remedy: Remedy) -> At:
    """The whole function around it, of a file that imports torch."""
    around = event_of(remedy.act).function
    sure(around and isinstance(around.node, FunctionNode) and not around.node.decorator_list)
    file, found = around.file, around.node  # type: ignore[union-attr]
    code = syntax(file)
    sure(code.aliases.get("torch") == "torch" and not any(code.inside(found, k) for k in (ast.Yield, ast.YieldFrom)))
    return at(file, found)


def key_in_loop(remedy: Remedy) -> At:
    """The key of the one call that draws from it in a loop with a counter."""
    file, use, around = remedy.act.origin
    code = syntax(file)
    over, index = getattr(around, "iter", None), getattr(around, "target", None)
    given = [a for a in (*use.args, *(k.value for k in use.keywords)) if isinstance(a, ast.Name)
             and ("key" in a.id.lower() or a.id in ("rng", "k"))]  # fmt: skip
    sure(len(given) == 1 and code.statement(use) in around.body)
    sure(len([n for s in around.body for n in below(s) if written(n) == given[0].id]) == 1)
    counts = written(call_of(over).func).rpartition(".")[2]
    index = index.elts[0] if counts == "enumerate" and isinstance(index, ast.Tuple) else index
    sure(counts in ("range", "trange", "enumerate") and isinstance(index, ast.Name) and index.id != "_")
    calls = (c.func for c in code.of(ast.Call) if code.qualified(c.func).startswith("jax.random."))
    module = next((written(f.value) for f in calls if isinstance(f, ast.Attribute)), "jax.random")
    sure(module != "jax.random" or code.aliases.get("jax") == "jax")
    return at(file, given[0], index=written(index), random=module)


def chosen_parameters(remedy: Remedy) -> At:
    """The parameters that require a gradient, chosen: those that are frozen for now the optimizer passes over."""
    made = event_of(remedy.act)
    given = argument(call_of(made.node), 0, "params")
    chosen: Any = syntax(made.file).assigned(given) if isinstance(given, ast.Name) else given
    if isinstance(chosen, (ast.ListComp, ast.GeneratorExp)):
        one, name = chosen.generators[0], written(chosen.elt)
        sure([written(one.target), *map(written, one.ifs)] == [name, f"{name}.requires_grad"])
        inner = one.iter
    else:
        sure(last_name(call_of(chosen).func) == "filter")
        inner = chosen.args[1]
    sure(last_name(call_of(inner).func) == "parameters")
    return at(made.file, (chosen, source_of(made.file, inner)))


def parameters_held(remedy: Remedy) -> At:
    """What an optimizer is built over: the parameters of one module, or a sum of lists."""
    made, names = event_of(remedy.act), remedy.text.split()
    given = argument(call_of(made.node), 0, "params")
    sure(given and names and all(n.replace(".", "_").isidentifier() for n in names))
    sure(not any(f"{n}.parameters" in written(given) for n in names))
    around = "<>" + "".join(f" + list({n}.parameters())" for n in names)
    if not isinstance(given, ast.BinOp):
        sure(last_name(call_of(given).func) == "parameters" and not call_of(given).args)
        around = f"[*<>, {', '.join(f'*{n}.parameters()' for n in names)}]"
    return at(made.file, (given, around), modules=" and ".join(names))


def assigning_load(remedy: Remedy) -> At:
    """A load by assignment, unless the parameters hold nothing that could be copied into."""
    load = event_of(remedy.act)
    sure(argument(call_of(load.node), 99, "assign"))
    sure("meta" not in load.file.text and "mmap" not in load.file.segment(load.node))
    return at(load.file, load.node)


def freezing(remedy: Remedy) -> At:
    """What freezes a whole model, with its loop, and the output layer."""
    head, home, file = remedy.act.origin
    sure(file and home)
    code, line = syntax(file), remedy.act.at.line
    nodes: list[Any] = [*code.calls("requires_grad_"), *code.of(ast.Assign)]
    frozen: Any = next((n for n in nodes if n.lineno == line), None)
    around: Any = next((x for x in code.loops(frozen) if isinstance(x, ast.For)), None) if frozen else None
    owner = written(owner_of(call_of(frozen if around is None else around.iter)))
    sure(around is None or last_name(around.iter.func) in ("parameters", "named_parameters"))
    layer = target_of(syntax(home).statement(head.node))
    sure(isinstance(layer, ast.Attribute) and written(layer.value) in ("self", owner))
    return at(file, around or code.statement(frozen), layer=f"{owner}.{layer.attr}")


def thawing(remedy: Remedy) -> At:
    """What unfreezes a part, and the wrapper again (`net = DDP(net.module)`), whose hooks cover what is trained now."""
    change, wrapped = remedy.act.origin, event_of(remedy.target)
    sure(change is not None and wrapped.file is change.file)
    code, wrapper, one = syntax(wrapped.file), call_of(wrapped.node), statement_of(change)
    target, around = target_of(statement_of(wrapped)), code.parent(one)
    near: Any = code.owner if isinstance(target, ast.Attribute) else code.scope
    sure(near(change.node) is near(wrapper) is not None and re.fullmatch(r"(self\.)?\w+", written(target)))
    text, first, name = source_of(code.file, wrapper), source_of(code.file, wrapper.args[0]), written(target)
    sure(text.startswith(f"{written(wrapper.func)}({first}") and "\n" not in text)
    sure(not any(written(other.value) == name for other in code.of(ast.Assign)))  # the old one would go on as that
    one = around if isinstance(around, ast.For) and around.body == [one] else one
    return at(code.file, one, name=name, again=text.replace(f"({first}", f"({name}.module", 1))



def collection(remedy: Remedy) -> At:
    """A list or dict of layers that a module keeps."""
    store = event_of(remedy.act)
    kept: Any = statement_of(store)
    value, aliases = (target_of(kept) and kept.value), syntax(store.file).aliases
    library = next((k for k, v in aliases.items() if v == "torch.nn"), "torch.nn" if "torch" in aliases else "")
    sure(library and isinstance(value, (ast.List, ast.ListComp, ast.Dict, ast.DictComp)) and written(value) != "[]")
    return at(store.file, value, kind=f"{library}.Module{'Dict' if 'Dict' in type(value).__name__ else 'List'}")
