"""What hooks of modules do: their bodies are followed where they are registered, apart from what happens there."""

from __future__ import annotations

from traindx_tools.on_code.interpreter import Call, Interpreter
from traindx_tools.on_code.library import method
from traindx_tools.on_code.trace import Block
from traindx_tools.on_code.values import UNKNOWN, Bag, Function, Instance, Site, Symbol, Tensor, Thing, Value

FORWARD = frozenset({"register_forward_hook", "register_module_forward_hook"})


@method(*FORWARD, "register_full_backward_hook", "register_backward_hook", "register_full_backward_pre_hook")
def _registered(caller: Interpreter, call: Call) -> Value | None:
    """A hook that is registered: what it does, it does at each pass of the module."""
    hook, module = call.get(0, "hook"), call.receiver
    if isinstance(hook, Thing) and hook.type == "functools.partial" and isinstance(hook.args[0], Function):
        given, hook = list(hook.args[1:]), hook.args[0]
    else:
        given = []
    site = call.site
    if isinstance(hook, Function):
        block = Block("hook", call.node, call.frame.file, call.frame.function, subject=module)
        caller.blocks[-1].body.append(block)
        caller.blocks.append(block)
        loops, caller.loops = caller.loops, (*caller.loops, block)
        grad, caller.grad = caller.grad, True
        caller.call(hook, [*given, module or UNKNOWN, *_given(call, module, site)], {}, call.node, call.frame)
        caller.loops, caller.grad = loops, grad
        caller.blocks.pop()
    return Symbol("call", f"hook handle@{site}")


@method("register_step_post_hook")
def _after_steps(caller: Interpreter, call: Call) -> Value | None:
    """A hook of an optimizer: its body runs after each step."""
    if isinstance(call.receiver, Thing) and isinstance(call.first, Function):
        call.receiver.state.setdefault("after_step", []).append(call.first)
    return None


def _given(call: Call, module: Value | None, site: Site) -> list[Value]:
    """What a hook is given beside the module: inputs and output, or the gradients of both."""
    if call.name.rpartition(".")[2] not in FORWARD:
        gradient = Tensor(grad=False, site=site, tags=frozenset({"gradient"}))
        return [Bag("tuple", [gradient], open=True), Bag("tuple", [gradient], open=True)]
    known = isinstance(module, (Thing, Instance, Symbol))
    inputs = Bag("tuple", [Tensor(grad=None, site=site)], open=True)
    return [inputs, Tensor(grad=True, site=site, models=frozenset({id(module)} if known else ()))]
