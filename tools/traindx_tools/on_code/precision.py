"""In which dtype the parameters of a module are, as far as the program says."""

from __future__ import annotations

from traindx_tools.on_code.held import modules_of
from traindx_tools.on_code.library import submodules
from traindx_tools.on_code.values import Instance, Site, Thing, Value, unwrap

HALVES = ("float16", "bfloat16")


def half_module(optimizer: Value | None) -> tuple[Value, str, Site | None] | None:
    """A module that the optimizer holds and that was cast to a half type: the module, the dtype, where it was cast."""
    for module in modules_of(optimizer) or []:
        for part in [unwrap(module), *submodules(unwrap(module))[:1]]:
            if (
                isinstance(part, (Thing, Instance))
                and part.state.get("dtype") in HALVES
                and not part.state.get("frozen")
            ):
                return part, str(part.state["dtype"]), part.state.get("dtype_site")
    return None
