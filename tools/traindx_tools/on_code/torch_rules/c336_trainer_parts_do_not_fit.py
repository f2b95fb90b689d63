"""The parts that a Hugging Face Trainer is given do not fit each other.

`DataCollatorForLanguageModeling(tokenizer)` masks tokens for a masked language model unless it is told `mlm=False`; a
causal model then learns to predict tokens from a text with holes, at the masked places alone. A tokenizer of another
family of checkpoints gives numbers that mean other words to the model. `fp16=True` wants float32 weights: those loaded
in float16 end with "Attempting to unscale FP16 gradients". A model of which every parameter is frozen has nothing to
train.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.on_code.changes import Change
from traindx_tools.on_code.lookup import Lookup, lookup
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.syntax import Syntax, argument, last_name, written
from traindx_tools.rules import Rule

RULE = Rule(
    id="C336",
    name="trainer-parts-do-not-fit",
    title="The parts of a Hugging Face Trainer do not fit each other",
    severity=Severity.HIGH,
    sees="The model, the collator, the tokenizer and the arguments that one Trainer is given.",
    matters="The model learns another task than it is used for, reads other words than were written, or an error.",
    alike=("adapters over a frozen or half-precision model", "checkpoints that share one vocabulary"),
    confirm=("print(trainer.get_train_dataloader().__iter__().__next__()) and decode its input_ids and labels",),
)
_CAUSAL = re.compile(r"^AutoModelForCausalLM$|ForCausalLM$|LMHeadModel$")
_MASKED = re.compile(r"^AutoModelForMaskedLM$|ForMaskedLM$")
_FAMILIES = (
    ("gpt2", re.compile(r"(^|/)(distil)?gpt2(-|$)|(^|/)(distil)?roberta-|(^|/)bart-|codebert")),
    ("bert-uncased", re.compile(r"(^|/)(distil|mobile)?bert-[\w-]*uncased|electra-")),
    ("bert-cased", re.compile(r"(^|/)(distil)?bert-(base|large)-cased")),
    ("bert-multilingual", re.compile(r"(^|/)(distil)?bert-base-multilingual")),
    ("albert", re.compile(r"(^|/)albert-")),
    ("t5", re.compile(r"(^|/)(flan-)?t5-")),
    ("xlm-roberta", re.compile(r"(^|/)xlm-roberta-")),
    ("deberta-v3", re.compile(r"(^|/)deberta-v3-")),
)  # fmt: skip
_ADAPTED = re.compile(r"peft|lora|adapter|load_in_(4|8)bit|BitsAndBytes", re.IGNORECASE)
_TRAINERS = frozenset({"Trainer", "Seq2SeqTrainer"})
_Fault = tuple[Syntax, ast.AST, str, str, tuple[Patch, ...]]


def check(project: Project) -> Iterator[Finding]:
    """Look at every Trainer of transformers."""
    if not any("transformers" in f.text and "Trainer(" in f.text for f in project.files):
        return
    look = lookup(project)
    for code in look.codes:
        for call in code.calls(*_TRAINERS):
            if code.qualified(call.func).startswith("transformers."):
                for fault in (*_collator(look, code, call), *_half(look, code, call), *_frozen(look, code, call)):
                    yield _finding(*fault)
    yield from (_finding(*fault) for fault in _tokenizer(look))


def _given(look: Lookup, code: Syntax, call: ast.Call, position: int, name: str) -> tuple[Syntax, ast.Call] | None:
    """The call that makes an argument of the Trainer."""
    value = argument(call, position, name)
    if value is None:
        return None
    of, made = look.origin(code, value)
    return (of, made) if isinstance(made, ast.Call) else None


def _class(made: ast.Call) -> str:
    """`AutoModelForCausalLM` of `AutoModelForCausalLM.from_pretrained(...)`."""
    func = made.func
    loads = isinstance(func, ast.Attribute) and func.attr in ("from_pretrained", "from_config")
    return last_name(func.value) if loads and isinstance(func, ast.Attribute) else last_name(func)


def _collator(look: Lookup, code: Syntax, call: ast.Call) -> Iterator[_Fault]:
    model, collator = _given(look, code, call, 0, "model"), _given(look, code, call, 2, "data_collator")
    if model is None or collator is None or last_name(collator[1].func) != "DataCollatorForLanguageModeling":
        return
    of, made = collator
    if any(k.arg is None for k in made.keywords):
        return
    given = argument(made, 1, "mlm")
    masked = True if given is None else given.value if isinstance(given, ast.Constant) else None
    change = Change(of.file, "for this kind of model")
    if masked is True and _CAUSAL.search(_class(model[1])):
        patch = change.replace(given, "False") if given is not None else change.pass_argument(made, "mlm", "False")
        yield (of, made, "masked for causal", f"{written(made)[:80]} masks tokens for a masked language model, and "
               f"{_class(model[1])} is a causal one: mlm=False is missing", patch.patches())  # fmt: skip
    elif masked is False and given is not None and _MASKED.search(_class(model[1])):
        yield (of, made, "causal for masked", f"{written(made)[:80]} masks nothing, and {_class(model[1])} sees in its "
               "input each token that it has to predict", change.replace(given, "True").patches())  # fmt: skip


def _half(look: Lookup, code: Syntax, call: ast.Call) -> Iterator[_Fault]:
    model, args = _given(look, code, call, 0, "model"), _given(look, code, call, 1, "args")
    if model is None or args is None or any(c.file.mentions(_ADAPTED) for c in (code, model[0])):
        return
    wanted = argument(args[1], 99, "fp16")
    if not (isinstance(wanted, ast.Constant) and wanted.value is True):
        return
    of, made = model
    cast = isinstance(made.func, ast.Attribute) and made.func.attr == "half" and not made.args
    dtype = argument(made, 99, "torch_dtype", "dtype")
    loaded = dtype is not None and (written(dtype) in ("torch.float16", "torch.half") or (
        isinstance(dtype, ast.Constant) and dtype.value == "float16"))  # fmt: skip
    if cast or loaded:
        change = Change(of.file, "float32 weights")
        if cast and isinstance(made.func, ast.Attribute):
            change = change.unwrap(made, made.func.value)
        elif dtype is not None:
            change = change.replace(dtype, "torch.float32" if written(dtype).startswith("torch.") else '"float32"')
        yield (of, made, "half", f"{written(made)[-70:]} has float16 weights, and fp16=True at line {wanted.lineno} "
               "scales losses for float32 ones: their gradients cannot be unscaled", change.patches())  # fmt: skip


def _frozen(look: Lookup, code: Syntax, call: ast.Call) -> Iterator[_Fault]:
    """`for p in model.parameters(): p.requires_grad = False`, and nothing that lets a part learn again."""
    value = argument(call, 0, "model")
    if not isinstance(value, ast.Name) or any(c.file.mentions(_ADAPTED) for c in look.codes):
        return
    scope = code.scope(call)
    for loop in code.inside(scope, ast.For):
        over, target = loop.iter, loop.target
        whole = written(over) == f"{value.id}.parameters()" and isinstance(target, ast.Name) and len(loop.body) == 1
        statement = loop.body[0]
        off = (isinstance(statement, ast.Assign) and written(statement.targets[0]) == f"{written(target)}.requires_grad"
               and isinstance(statement.value, ast.Constant) and statement.value.value is False)  # fmt: skip
        if not whole or not off or loop.lineno > call.lineno or code.scope(loop) is not scope:
            continue
        under = any(isinstance(a, (ast.If, ast.Try)) for a in code.above(loop))
        later = [n for n in code.inside(scope, ast.Attribute) if loop.end_lineno is not None
                 and loop.end_lineno < n.lineno and (n.attr in ("requires_grad", "requires_grad_")
                 or (isinstance(n.ctx, ast.Store) and written(n).startswith(f"{value.id}.")))]  # fmt: skip
        handed = [c for c in code.inside(scope, ast.Call) if (loop.end_lineno or 0) < c.lineno < call.lineno
                  and any(written(a) == value.id for a in c.args)]  # fmt: skip
        if not under and not later and not handed:
            yield (code, loop, "frozen", f"every parameter of {value.id} is frozen, and {last_name(call.func)} at line "
                   f"{call.lineno} trains it: nothing can learn", ())  # fmt: skip


def _tokenizer(look: Lookup) -> Iterator[_Fault]:
    """The one tokenizer and the one model of a project, loaded from checkpoints that share no vocabulary."""
    found: dict[str, list[tuple[Syntax, ast.Call, str]]] = {"tokenizer": [], "model": []}
    for code in look.codes:
        for call in code.calls("from_pretrained"):
            maker = _class(call)
            kind = "tokenizer" if "Tokenizer" in maker else "model" if "Model" in maker or "For" in maker else ""
            if kind and call.args:
                _, name = look.origin(code, call.args[0])
                text = name.value if isinstance(name, ast.Constant) and isinstance(name.value, str) else ""
                found[kind].append((code, call, text))
    if len(found["tokenizer"]) != 1 or len(found["model"]) != 1:
        return
    (code, call, words), (_, model, weights) = found["tokenizer"][0], found["model"][0]
    one, other = _family(words), _family(weights)
    if one and other and one != other:
        yield (code, call, "tokenizer", f"the tokenizer of {words!r} numbers other words than {weights!r} (line "
               f"{model.lineno}) was trained with", ())  # fmt: skip


def _family(name: str) -> str:
    return next((family for family, pattern in _FAMILIES if pattern.search(name)), "")


def _finding(code: Syntax, node: ast.AST, kind: str, why: str, patch: tuple[Patch, ...]) -> Finding:
    return RULE.finding(
        f"{why} (at {code.at(node)})",
        code.place(node),
        code.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": kind},
        patch=patch,
    )
