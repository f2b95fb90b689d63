"""Random augmentation is drawn once, and every epoch sees the same draws.

Augmentation works because a sample looks different each time. A data set that applies its random transform in
`__init__`, a cache around `__getitem__`, a list that is augmented before the first epoch, or `dataset.map(augment)` of
Hugging Face (which writes its results to a file) keeps the first draw: the model memorises as many fixed samples as
there are, and stronger augmentation does not help. Deterministic steps may be kept; the random ones belong behind them,
where a sample is fetched.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.augmented_once import Once, once
from traindx_tools.on_code.lookup import lookup
from traindx_tools.on_code.project import Project
from traindx_tools.rules import Rule

RULE = Rule(
    id="C285",
    name="augmented-once",
    title="Random augmentation is drawn once, not in every epoch",
    severity=Severity.MEDIUM,
    sees="A random transform whose result a data set, a cache, a list or dataset.map() keeps.",
    matters="Every epoch sees the same samples: the model memorises them as if nothing were augmented.",
    alike=("a cache of what is deterministic, with the random part behind it", "validation data with fixed views",
           "several augmented copies of each sample", "set_transform or with_transform, which run when a row is read"),
    confirm=("print(torch.equal(train_set[0][0], train_set[0][0])): True although the transform draws",),
)  # fmt: skip


def check(project: Project) -> Iterator[Finding]:
    """Look at every data set, list and map."""
    if not any("ransform" in f.text or "aug" in f.text or "andom" in f.text for f in project.files):
        return
    told: set[str] = set()
    for one in once(lookup(project)):
        if one.code.at(one.call) not in told:
            told.add(one.code.at(one.call))
            yield _finding(one)


def _finding(one: Once) -> Finding:
    code = one.code
    return RULE.finding(
        f"{code.file.segment(one.call)[:80]} at {code.at(one.call)} applies random augmentation once "
        f"({one.random.name} draws at {one.random.at}) and its result is kept in {one.kept}: every epoch gets the same "
        "stored sample, not a fresh draw",
        code.place(one.call),
        code.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": one.kind, "random": one.random.name},
    )
