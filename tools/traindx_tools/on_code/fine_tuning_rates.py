"""Learning rates that are given to a trainer's arguments, or to an optimizer over a pretrained model or from hparams.

Pretrained transformers are tuned with 1e-5 to 1e-4 (Devlin et al. 2019: 2e-5 to 5e-5; the default of transformers is
5e-5), adapters and LoRA with up to a few times 1e-3 (Hu et al. 2022: 2e-4). Soft prompts are trained with rates up to
0.3 (Lester et al. 2021) and are left alone, as are optimizers that scale their steps themselves.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.on_code.lookup import Lookup
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import Syntax, argument, last_name, parameters, written

REMARK, FAULT = 1e-2, 0.1
"""For a pretrained transformer under Adam: a hundred times what it is tuned with, and a thousand times."""
_ARGUMENTS = re.compile(r"TrainingArguments$|^(SFT|DPO|KTO|ORPO|CPO|Reward|GRPO|PPO|RLOO|OnlineDPO)Config$")
_ADAM = frozenset({"Adam", "AdamW", "NAdam", "RAdam", "Adamax"})
_SOFT = re.compile(r"PromptTuning|PrefixTuning|PromptEncoder|soft_?prompt|\bIA3|textual_?inversion|VeraConfig|prodigy"
                   r"|adafactor|\blion\b|dadapt|schedule_?free|scale_parameter", re.IGNORECASE)  # fmt: skip


@dataclass(frozen=True)
class Rate:
    """A learning rate where it is given. `pretrained`: whether what it trains certainly is."""

    code: Syntax
    call: ast.Call
    given: ast.expr
    value: float
    optimizer: str
    pretrained: bool


def rates(look: Lookup) -> Iterator[Rate]:
    """Every rate in the arguments of a trainer, of an optimizer over a pretrained model, and from hparams."""
    pretrained = any("from_pretrained" in c.file.text for c in look.codes)
    soft: bool | None = None
    for rate in _all(look, pretrained):
        if rate.value > REMARK and pretrained:  # asked only where something is to be said: it reads every text
            soft = any(c.file.mentions(_SOFT) for c in look.codes) if soft is None else soft
            if soft:
                return
        yield rate


def _all(look: Lookup, pretrained: bool) -> Iterator[Rate]:
    for code in look.codes:
        if pretrained and ("TrainingArguments" in code.file.text or "Config(" in code.file.text):
            yield from _of_arguments(look, code)
        if "hparams" in code.file.text or "from_pretrained" in code.file.text:
            yield from _of_optimizers(look, code)


def _of_arguments(look: Lookup, code: Syntax) -> Iterator[Rate]:
    for call in code.of(ast.Call):
        if not _ARGUMENTS.search(last_name(call.func)):
            continue
        given, kind = argument(call, 99, "learning_rate"), argument(call, 99, "optim")
        named = code.origin(kind) if kind is not None else None
        adam = named is None or (isinstance(named, ast.Constant) and "adam" in str(named.value))
        value = look.number(code, given)
        if given is not None and value is not None and adam:
            yield Rate(code, call, given, value, "AdamW", True)


def _of_optimizers(look: Lookup, code: Syntax) -> Iterator[Rate]:
    for call in code.calls(*_ADAM):
        given = argument(call, 1, "lr")
        if given is None or not code.qualified(call.func).startswith("torch.optim."):
            continue
        by_hparams = "hparams" in written(given)
        trained = _pretrained(code, call)
        if by_hparams or trained:
            value = _from_hparams(look, code, given) if by_hparams else look.number(code, given)
            shaped = value == 1 and "LambdaLR" in code.file.text  # the function of the schedule gives the rate itself
            if value is not None and not shaped:
                yield Rate(code, call, given, value, last_name(call.func), trained)


def _pretrained(code: Syntax, call: ast.Call) -> bool:
    """Whether all parameters of a model from from_pretrained() are handed to an optimizer."""
    params = call.args[0] if call.args else argument(call, 0, "params")
    if not (isinstance(params, ast.Call) and last_name(params.func) == "parameters"
            and isinstance(params.func, ast.Attribute)):  # fmt: skip
        return False
    model = params.func.value
    if written(model) == "self":
        owner = code.owner(call)
        return owner is not None and any(
            isinstance(n, ast.Assign) and isinstance(n.value, ast.Call) and _opens(n.value)
            for n in below(owner))  # fmt: skip
    made = code.origin(model)
    return isinstance(made, ast.Call) and _opens(made)


def _opens(call: ast.Call) -> bool:
    return last_name(call.func) == "from_pretrained" and isinstance(call.func, ast.Attribute) and "okenizer" not in (
        written(call.func.value)) and "rocessor" not in written(call.func.value)  # fmt: skip


def _from_hparams(look: Lookup, code: Syntax, given: ast.expr) -> float | None:
    """`self.hparams.lr` and `self.hparams["lr"]`: what the only maker of the module passes, or the default."""
    name = given.attr if isinstance(given, ast.Attribute) else (
        given.slice.value if isinstance(given, ast.Subscript) and isinstance(given.slice, ast.Constant) else None)
    owner = code.owner(given)
    if not isinstance(name, str) or owner is None:
        return None
    init = next((f for f in owner.body if isinstance(f, ast.FunctionDef) and f.name == "__init__"), None)
    if init is None or name not in parameters(init):
        return None
    place = [n for n in parameters(init) if n != "self"].index(name)
    calls = look.callers(init, code)
    passed = [(c, value) for c, call in calls if (value := argument(call, place, name)) is not None]
    if len(passed) > 1 or any(k.arg is None for _, call in calls for k in call.keywords):
        return None
    return look.number(*passed[0]) if passed else look.number(code, parameters(init)[name])
