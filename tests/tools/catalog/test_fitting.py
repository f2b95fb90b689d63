"""A run is offered the checks that can tell it something, and words and fixes that fit what was measured."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from traindx_tools.catalog.catalog import FailureMode, Step, load_catalog
from traindx_tools.catalog.fitting import NEEDS, Circumstances, fits, fitted, needs_of, said_by
from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.rules import all_rules
from traindx_tools.triage import rank

CATALOG = load_catalog()
STEPS = [(mode, step) for mode in CATALOG.values()
         for form in (mode, *(replace(mode, **v.changes) for v in mode.variants))
         for step in (*form.confirm, *form.rule_out)]  # fmt: skip
ON_CPU = Circumstances(device="cpu", libraries=frozenset({"torch"}), scheduled=True)
OLD_KEYS = Circumstances(device="cpu", libraries=frozenset({"jax", "optax"}), keys="old")


def finding(rule: str, bearing: Bearing = Bearing.CAUSE, **measured: object) -> Finding:
    where = Location(file="train.py", line=3) if rule[0] == "C" else Location(module="net", step=9.0)
    return Finding(rule=rule, title="t", severity=Severity.CRITICAL, bearing=bearing, statement=f"{rule} was seen",
                   where=where, source="train.py", measured=measured)  # type: ignore[arg-type]


def offered(here: Circumstances) -> list[str]:
    return [f"{s.do} {s.command}" for mode, s in STEPS if fits(s, here)]


def test_a_run_on_the_cpu_is_not_asked_about_the_device() -> None:
    assert not [t for t in offered(ON_CPU) if re.search(r"torch\.cuda|nvidia-smi|CUDA_|compute-sanitizer", t)]
    assert [t for t in offered(replace(ON_CPU, device="cuda")) if "torch.cuda" in t]
    assert [t for t in offered(Circumstances()) if "torch.cuda" in t], "nothing is known: nothing is left out"


def test_memory_of_the_process_is_looked_at_where_there_is_no_device() -> None:
    mode = CATALOG["mem.graph-kept"]
    on_cpu = fitted(mode, [(finding("T801"), Bearing.CAUSE)], replace(ON_CPU, seen=frozenset({"T801"})))
    assert ["getrusage" in s.command for s in (*on_cpu.confirm, *on_cpu.rule_out)] == [True, True]
    on_device = fitted(mode, [], Circumstances(device="cuda"))
    assert not any("getrusage" in s.command for s in (*on_device.confirm, *on_device.rule_out))


def test_each_library_is_asked_in_its_own_words() -> None:
    assert not [t for t in offered(ON_CPU) if re.search(r"\bJAX_[A-Z]", t)]
    assert not [t for t in offered(OLD_KEYS) if re.search(r"\btorch\.\w", t)]


@pytest.mark.parametrize(("libraries", "torch", "jax"), [
    ({"torch", "numpy"}, True, False),
    ({"transformers", "numpy"}, True, False),
    ({"jax", "optax"}, False, True),
    ({"torch", "jax"}, True, True),
    ({"numpy", "math"}, False, False),
    ({"my_trainer"}, True, False),
])  # fmt: skip
def test_checks_are_of_the_libraries_that_are_used(libraries: set[str], torch: bool, jax: bool) -> None:
    here = Circumstances(libraries=frozenset(libraries))
    assert (here.has("torch"), here.has("jax")) == (torch, jax)
    words = Step("Print the gradient norm before backward")
    assert fits(words, here) is torch


def test_jax_checks_only_keys_that_it_can_see() -> None:
    assert not [t for t in offered(OLD_KEYS) if "JAX_DEBUG_KEY_REUSE" in t]
    assert [t for t in offered(replace(OLD_KEYS, keys="typed")) if "JAX_DEBUG_KEY_REUSE" in t]


def test_what_the_instruments_said_is_not_asked_again() -> None:
    reruns = [s for _, s in STEPS if "T101" in s.expect and s.command.startswith("traindx diagnose PATH --run")]
    assert len(reruns) > 4
    assert not any(fits(s, replace(ON_CPU, seen=frozenset({"T101"}))) for s in reruns)
    assert all(fits(s, replace(ON_CPU, seen=frozenset({"L101"}))) for s in reruns)


def test_what_needs_a_change_first_says_so() -> None:
    """A rerun of the same program shows the same: each one says that it is for the instruments, or for a change."""
    words = re.compile(r"instrument|anomaly|gradient norm|module|each layer|units|inactive|layer.s|activation"
                       r"|shapes|standard deviation|reproduction|same data|count|capacity|recompilation|cosine|keys"
                       r"|dynamo|factor", re.I)  # fmt: skip
    unclear = [(mode.id, s.do) for mode, s in STEPS
               if s.command.startswith(("traindx diagnose PATH --run", "traindx run "))
               and not s.edited and not words.search(s.do)]
    assert unclear == []
    assert all("CMD" in s.command for _, s in STEPS if s.edited)


def test_a_schedule_keeps_its_shape() -> None:
    mode = CATALOG["lr.too-high"]
    told = [s.do for s in fitted(mode, [], ON_CPU).confirm if "divided by 10" in s.do]
    assert told == ["Run 200 steps with the peak of the schedule divided by 10 and its shape as it is, nothing else "
                    "changed"]
    plain = [s.do for s in fitted(mode, [], replace(ON_CPU, scheduled=False)).confirm if "divided by 10" in s.do]
    assert plain == ["Run 200 steps with the learning rate divided by 10, nothing else changed"]


@pytest.mark.parametrize(("code", "found"), [
    ("total_loss += loss\n", True),
    ("running += batch_loss\n", False),
    ("", True),
])  # fmt: skip
def test_a_search_that_finds_nothing_is_not_offered(code: str, found: bool) -> None:
    step = Step("Search", 'grep -nE "\\+= *loss" train.py', "without .item()")
    assert fits(step, Circumstances(code=code)) is found
    assert fits(replace(step, expect="absent"), Circumstances(code="x = 1"))
    assert not fits(step, Circumstances(code="total_loss += loss\n"), line_found=True)


def test_a_broken_pattern_is_left_to_grep() -> None:
    assert fits(Step("Search", 'grep -nE "([" train.py', "a line"), Circumstances(code="x = 1"))


def test_movement_is_measured_on_every_parameter() -> None:
    """The first parameter says nothing of the others; its dtype alone may stand for theirs."""
    first = [(mode.id, s.command) for mode, s in STEPS if "next(model.parameters())" in s.command]
    assert [m for m, command in first if not re.search(r"next\(model\.parameters\(\)\)\.dtype", command)] == []


def test_needs_and_rules_exist() -> None:
    known = set(all_rules())
    for mode, step in STEPS:
        assert needs_of(step) <= NEEDS, mode.id
        assert said_by(step) <= known, mode.id
    for mode in CATALOG.values():
        assert {r for v in mode.variants for r in v.rules} <= {e.rule for e in mode.speaks_for}, mode.id


CUDA_ALONE = {"env.accelerator-backend", "env.gpu-architecture", "env.hardware-fault", "mem.other-process",
              "dist.one-gpu-for-all-ranks", "perf.device-waits", "perf.host-synchronisation"}  # fmt: skip
"""Failure modes of the device itself."""


def test_every_mode_keeps_a_check_on_the_library_it_is_about() -> None:
    """A failure mode that is no matter of CUDA has a way to be confirmed on the CPU."""
    empty = []
    for mode in CATALOG.values():
        library = "jax" if mode.family == "jax" else "torch"
        here = Circumstances(device="cpu", libraries=frozenset({library, "jax", "torch"}))
        left = fitted(mode, [], here)
        if not (left.confirm or left.rule_out) and mode.id not in CUDA_ALONE and not mode.id.startswith("cuda."):
            empty.append(mode.id)
    assert empty == []


def of(rule: str, **measured: object) -> FailureMode:
    (first, *_) = rank([finding(rule, **measured)], {"opt.wrong-parameters": CATALOG["opt.wrong-parameters"]})
    assert first.claim == first.mode.claim
    return first.mode


def test_an_optimizer_that_lacks_a_part_is_told_from_one_of_another_model() -> None:
    partly, another = of("T301", kind="left-out", module="head"), of("T307", kind="another-instance")
    unregistered, empty = of("T301", kind="unregistered", module="layers"), of("T307", kind="empty")
    unfrozen, early = of("C162", kind="unfrozen"), of("C108", kind="too early")
    forms = (partly, another, unregistered, empty, unfrozen, early)
    assert len({m.claim for m in forms}) == len(forms)
    assert partly.targeted.summary == of("C276", kind="groups", module="head").targeted.summary
    assert "last" not in partly.targeted.summary
    assert "last" in another.targeted.summary
    assert "the loss may" in partly.mechanism
    assert "the loss stays" not in partly.mechanism
    assert "the loss stays" in another.mechanism
    assert not any("next(model" in s.command for m in forms for s in (*m.confirm, *m.rule_out))


def test_circumstances_are_read_from_code_and_errors(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("import torch\noptimizer = torch.optim.SGD(net.parameters(), lr=0.1)\n")
    assert Circumstances.of([script], []).device == "cpu"
    assert Circumstances.of([script], [], ["RuntimeError: CUDA error: device-side assert"]).device == "cuda"
    script.write_text("import lightning as L\ntrainer = L.Trainer()\n")
    assert Circumstances.of([script], []).device is None
    script.write_text("import jax\nkey = jax.random.PRNGKey(0)\nx = jax.device_put(1)\n")
    assert (Circumstances.of([script], []).keys, Circumstances.of([script], []).device) == ("old", None)
    assert Circumstances.of([tmp_path / "gone.py"], []) == Circumstances()
