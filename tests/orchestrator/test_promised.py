"""What a fix promises, from the sentence that its option shows."""

from __future__ import annotations

import pytest

from traindx.promised import promises_of
from traindx_tools.catalog.catalog import load_catalog


@pytest.mark.parametrize(("text", "said"), [
    ("loss falls below ln(classes) within an epoch; accuracy above chance", ["loss goes down", "accuracy goes up"]),
    ("loss and grad_norm stay finite past the failing step; values at other steps unchanged to 1e-6",
     ["loss is finite", "grad_norm is finite"]),
    ("gradient norm grows by the accumulation steps", ["grad_norm goes up"]),
    ("the KL leaves 0 after the first update", ["kl moves"]),
    ("validation loss falls", ["validation loss goes down"]),
    ("data_time below 5 % of step_time", ["data_time goes down"]),
    ("validation loss falls to the level that its accuracy implies", ["validation loss goes down"]),
    ("outputs differ; loss below the unigram entropy", ["loss goes down"]),
    ("smoother and faster decrease of the loss", ["loss goes down"]),
])
def test_a_metric_and_a_way_are_a_promise(text: str, said: list[str]) -> None:
    assert [str(p) for p in promises_of(text)] == said


@pytest.mark.parametrize("text", [
    "", "no second place calls backward or step", "loss equals the float32 run to 1 %", "assertion holds",
    "first loss near ln(classes)", "the gap falls below 5 % on the random split",
    "no rise of the loss in the first 500 steps", "entropy stays below its start", "the loss scale stops falling",
    "grad_norm no longer grows with the step", "gradient norms within a factor of 10", "memory flat after step 2"])
def test_what_two_runs_cannot_be_compared_by_promises_nothing(text: str) -> None:
    assert promises_of(text) == ()


def test_of_the_catalog_a_fair_share_promises_a_metric() -> None:
    targeted = [m.targeted.metric for m in load_catalog().values()]
    checkable = [t for t in targeted if promises_of(t)]
    assert len(checkable) > len(targeted) / 4
