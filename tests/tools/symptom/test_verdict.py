"""What a stated symptom does to the verdict: unexplained is never healthy, an unrelated cause is never asserted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from traindx_tools.catalog.catalog import SYMPTOMS, load_catalog
from traindx_tools.examine import Examination, examine
from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.symptom import fits, parse
from traindx_tools.symptom.kinds import UNRELATED_CAP
from traindx_tools.triage import CONFIDENT, rank

SENTENCES = [
    line.partition("  ==>")[0]
    for line in (Path(__file__).parent / "sentences.txt").read_text(encoding="utf-8").splitlines()
]
NEUTRAL = (
    "is this run fine?",
    "does this look healthy?",
    "Is anything wrong with this run?",
    "",
    "everything works as expected",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run in which nothing is wrong: losses and accuracies that get better to the planned end."""
    place = tmp_path_factory.mktemp("run")
    rng = np.random.default_rng(0)
    lines = [
        f"step {s} loss {0.4 + 2 * np.exp(-s / 300) + rng.normal(0, 0.01):.4f} val_loss "
        f"{0.42 + 2 * np.exp(-s / 300) + rng.normal(0, 0.01):.4f} acc {0.96 - 0.8 * np.exp(-s / 300):.4f} "
        f"lr {1e-3 * (1 - s / 2000):.2e} grad_norm {0.5 + rng.normal(0, 0.02):.3f}"
        for s in range(0, 2000, 20)
    ]
    (place / "train.log").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return place


def seen(folder: Path, words: str) -> Examination:
    return examine([folder / "train.log"], symptom=words, root=folder)


@pytest.mark.parametrize("words", NEUTRAL)
def test_a_question_states_nothing_and_the_run_may_be_healthy(folder: Path, words: str) -> None:
    found = seen(folder, words)
    assert found.verdict.status == "healthy"
    assert found.symptom_answers == ()


@pytest.mark.parametrize(
    "words",
    [
        "the loss is NaN",
        "loss explodes",
        "the loss is flat",
        "loss spike at step 1000",
        "loss does not move for the first 200 steps",
    ],
)
def test_what_the_record_refutes_does_not_hold_the_verdict(folder: Path, words: str) -> None:
    found = seen(folder, words)
    assert found.verdict.status == "healthy"
    assert all(a.refuted for a in found.symptom_answers)


@pytest.mark.parametrize(
    "words",
    [
        "generated text skips every other token",
        "the blorb frobnicates",
        "memory grows",
        "it hangs after the last epoch",
        "accuracy is lower than in the paper",
    ],
)
def test_what_is_unexplained_needs_more_data_and_says_so(folder: Path, words: str) -> None:
    found = seen(folder, words)
    assert found.verdict.status == "needs_more_data"
    assert words[:20] in found.verdict.reason
    assert "not explained" in found.verdict.reason


@pytest.mark.slow
@given(words=st.lists(st.sampled_from(SENTENCES), min_size=1, max_size=3).map(". ".join))
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_stated_symptom_that_is_unexplained_never_ends_in_healthy(folder: Path, words: str) -> None:
    found = seen(folder, words)
    open_ = [a for a in found.symptom_answers if a.is_open]
    if found.verdict.status == "healthy":
        assert not open_, open_
    assert len(found.symptom_answers) == len(parse(words, [s.original for s in found.run.series]))


@pytest.mark.slow
@given(words=st.text(max_size=200))
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_gives_a_verdict(folder: Path, words: str) -> None:
    assert seen(folder, words).verdict.status in ("healthy", "needs_more_data")


@pytest.mark.parametrize(
    ("mode", "words", "told"),
    [
        (("slow",), "validation accuracy stays at 0.3", "unrelated"),
        (("memory", "slow"), "the loss is NaN", "unrelated"),
        (("nonfinite",), "training is very slow", "unrelated"),
        (("slow",), "the model does not generalise", "unrelated"),
        (("crash",), "accuracy stays at chance", "unrelated"),
        (("slow",), "training is very slow", "explains"),
        (("memory",), "the run crashes", "explains"),
        (("nonfinite",), "the run crashes", "explains"),
        (("divergence",), "loss becomes inf", "explains"),
        (("collapse",), "the learning rate jumps back", "unknown"),
        (("slow",), "is this run fine?", "unknown"),
        (("slow",), "", "unknown"),
        ((), "the loss is NaN", "unknown"),
        (("slow",), "training is very slow and accuracy stays at chance", "explains"),
    ],
)
def test_whether_a_mode_can_explain(mode: tuple[str, ...], words: str, told: str) -> None:
    assert fits(mode, parse(words)) == told


@given(mode=st.frozensets(st.sampled_from(sorted(SYMPTOMS)), min_size=1), words=st.sampled_from(SENTENCES))
def test_a_mode_of_the_same_kind_always_explains(mode: frozenset[str], words: str) -> None:
    stated = [s for s in parse(words) if not s.asked]
    if any(mode & s.kinds for s in stated):
        assert fits(mode, stated) == "explains"


def test_a_cause_that_cannot_explain_what_was_said_is_not_asserted() -> None:
    waits = Finding(
        "L402",
        "waits for data",
        Severity.HIGH,
        Bearing.CAUSE,
        "80 % of a step is spent waiting for data",
        Location(file="log.txt", line=3),
        "log.txt",
        {"share": 0.8},
    )
    modes = load_catalog()
    plain = rank([waits], modes)[0]
    assert plain.mode.symptoms[0] == "slow"
    for words in ("validation accuracy stays at 0.3", "the samples are garbage"):
        held = [h for h in rank([waits], modes, words) if h.mode.id == plain.mode.id]
        assert all(h.confidence <= UNRELATED_CAP < CONFIDENT for h in held)
    told = next(h for h in rank([waits], modes, "training is slow") if h.mode.id == plain.mode.id)
    assert told.confidence >= plain.confidence
