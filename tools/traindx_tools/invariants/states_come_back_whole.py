"""What is loaded into a module is what was meant to be kept, and nothing of it is skipped unseen.

`state_dict()` returns the live tensors. `best = model.state_dict()` at the best epoch goes on changing with the model,
so that loading it at the end changes nothing: the "best" model is the last one. A deep copy, or a file, keeps them.
A run that goes on needs all that its loop moves: the optimizer's moments, the schedule, the average of the weights,
counts that rates are reckoned from. What is in no file, what nobody loads, what is loaded before the objects are there
and what goes into an object that is made anew begin again in every resumed run.
With `strict=False` keys that do not fit are skipped without a word: a prefix too many, and no weight is loaded. A model
that was saved inside DataParallel or DistributedDataParallel has such a prefix ("module.").
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Severity
from traindx_tools.invariants.breach import Breach, pages
from traindx_tools.program.known import Known
from traindx_tools.program.program import Program

RULES = (*pages("state", ("C150", "C205", "C206")), *pages("data", ("C292",)))
_LACKS = {
    "saved": "The checkpoint saved at {at} holds a position to resume from and not {what}",
    "restored": "The checkpoint saved at {beside} has {what}, and nothing puts it back with the rest at {at}",
    "remade": "What is loaded at {at} goes into a {what} that never steps: the one that does is made anew at {beside}",
    "counter": "The checkpoint saved at {at} lacks {what}, a count that a rate comes from: it begins anew",
    "weights": "{what}.load_from_checkpoint at {at} brings the weights alone, and fit gets no ckpt_path: optimizer, "
               "schedule and epoch begin anew",
    "statistics": "{what} at {at} that are not saved in the checkpoint and not restored with the model (loaded at "
                  "{beside}): after a restart the normalisation begins anew",
    "model alone": "{what}.train() at {at} goes on from checkpoints that hold the model alone (save_only_model, "
                   "{beside}): the optimizer's moments, the schedule and the random states begin anew",
    "order": "At {at}, before line {beside.line}, {what}",
}
_KINDS = {"the optimizer's state": "optimizer", "the average of the weights": "ema",
          "the state of the loss scaler": "scaler", "the state of the schedule": "schedule"}


def check(program: Program) -> Iterator[Breach]:
    """Look at every state that comes back."""
    for one in program.states_back:
        yield Breach(
            "C150", f"{one.text} at {one.taken} keeps references to the live weights; loading them back at line "
            f"{one.loaded.line} changes nothing: copy.deepcopy is needed where they are kept", one.taken,
            measured={"kind": "reference", "load_line": one.loaded.line})
    for lack in program.lacks:
        yield Breach("C292" if lack.kind == "statistics" else "C205", _LACKS[lack.kind].format(
            at=lack.at, what=lack.what, beside=lack.beside), lack.at, measured={
                "kind": _KINDS.get(lack.what, lack.kind)},
            severity=Severity.LOW if lack.kind == "weights" else None)
    for load in program.states_skipped:
        if load.wrapper is not None:
            yield Breach(
                "C206", f"{load.wrapper.quote} at {load.wrapper} is saved as it is, with \"module.\" before its keys; "
                f"{load.text} at {load.at} skips all of them where the model is not wrapped, and drops the list: no "
                "weight is loaded", load.at, Known.GUESSED, {"kind": "prefix"}, Severity.HIGH)
        else:
            yield Breach(
                "C206", f"{load.text} at {load.at} skips keys that do not fit and drops the list of them: weights may "
                "stay at their initialisation unseen", load.at, Known.GUESSED, {"kind": "strict"},
                Severity.INFO if load.saves else None)
