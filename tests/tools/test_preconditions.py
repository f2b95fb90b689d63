"""A mode whose precondition nothing shows stands behind those that need none, and says what would show it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from traindx_tools.catalog.catalog import load_catalog
from traindx_tools.errors import CatalogError
from traindx_tools.examine import Examination, examine
from traindx_tools.on_logs import read_run
from traindx_tools.on_logs.run import Run
from traindx_tools.preconditions import NOTHING_SHOWS, grounded_first, preconditions, shown_by

NAN = "".join(f"step {i} loss {2 - i / 100:.2f} lr 0.1\n" for i in range(60)) + "".join(
    f"step {i} loss nan lr 0.1\n" for i in range(60, 90))
FP16 = {"amp.loss-scale-collapse", "num.fp16-activation-overflow"}


def seen(folder: Path, log: str, words: str = "", **files: str) -> Examination:
    (folder / "train.log").write_text(log, encoding="utf-8")
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    return examine([folder / "train.log"], symptom=words, root=folder)


def test_float16_is_not_suspected_first_where_nothing_speaks_of_it(tmp_path: Path) -> None:
    found = seen(tmp_path, NAN).verdict.hypotheses
    assert found[0].mode.id not in FP16
    confidences = [h.confidence for h in found]
    assert confidences == sorted(confidences, reverse=True)
    behind = [h for h in found if h.unshown]
    assert all(h.unshown.startswith(NOTHING_SHOWS) for h in behind)
    assert list(found) == [*(h for h in found if not h.unshown), *behind]


@pytest.mark.parametrize("log", ["use_amp: True\n" + NAN, "{'lr': 0.1, 'fp16': True}\n" + NAN,
                                 NAN.replace(" lr", " loss_scale 65536 lr")])
def test_a_trace_in_the_log_is_enough(tmp_path: Path, log: str) -> None:
    found = seen(tmp_path, log).verdict.hypotheses
    assert [h for h in found if h.mode.id in FP16]
    assert not any(h.unshown for h in found if h.mode.id in FP16)


def test_so_is_what_the_person_says_and_what_the_code_holds(tmp_path: Path) -> None:
    assert "half-precision" in shown_by(Run(), (), "NaN with fp16")
    code = tmp_path / "train.py"
    code.write_text("scaler = torch.cuda.amp.GradScaler()\n", encoding="utf-8")
    assert "half-precision" in shown_by(Run(), [code])
    assert shown_by(Run(), [tmp_path / "missing.py"]) == frozenset({
        "own-loop", "text-policy", "reference-policy", "cleared-late", "rectifier", "sigmoid-in-loss",
        "softmax-of-ones-own", "several-tasks", "kept-gradients", "exponential", "logarithm", "root",
        "selected-branch", "factorisation", "connectionist", "uninitialised"}), "what only something else excludes"


def test_ranks_of_the_log_show_several_processes() -> None:
    run = read_run(["-"], stdin="".join(f"[rank{r}] step {i} loss 0.{i}\n" for i in range(9) for r in (0, 1)).encode())
    assert "several-ranks" in shown_by(run)


def test_where_nobody_looked_the_order_stays(tmp_path: Path) -> None:
    found = seen(tmp_path, NAN).verdict.hypotheses
    assert grounded_first(found, None) == list(found)


def test_what_evidence_shows_needs_no_other_ground(tmp_path: Path) -> None:
    found = seen(tmp_path, "use_amp: True\n" + NAN).verdict.hypotheses
    one = next(h for h in found if h.mode.id in FP16)
    (sure,) = grounded_first([replace(one, confidence=0.6)], frozenset())
    assert not sure.unshown


def test_every_mode_of_the_table_is_one_of_the_catalog() -> None:
    assert preconditions().keys() <= load_catalog().keys()


def test_a_mode_that_stands_twice_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    row = {"words": "x", "shown_by": "y", "traces": "z", "modes": ["a"]}
    preconditions.cache_clear()
    monkeypatch.setattr("traindx_tools.preconditions.table", lambda _: {"one": row, "two": row})
    with pytest.raises(CatalogError, match="names a twice"):
        preconditions()
    preconditions.cache_clear()


FLAT = "".join(f"Epoch {e}/12\n1563/1563 - 4s - 4ms/step - accuracy: 0.1000 - loss: 2.3026 - val_accuracy: 0.1000 "
               f"- val_loss: 2.3026\n" for e in range(1, 13))
PLAIN = "".join(f"step {i} loss 2.3026 lr 0.1\n" for i in range(60))


def test_a_log_of_another_framework_excludes_a_loop_of_ones_own(tmp_path: Path) -> None:
    found = seen(tmp_path, "import keras\n" + FLAT)
    assert "own-loop" not in (found.grounds or ())
    assert not {h.mode.id for h in found.verdict.hypotheses if not h.unshown} & {
        "accum.zero-grad-missing", "accum.zero-grad-before-step", "ckpt.missing-keys-silent"}


def test_a_log_that_says_nothing_of_its_framework_excludes_nothing() -> None:
    assert "own-loop" in shown_by(Run())
    assert "own-loop" in shown_by(Run(), (), "torch port of a keras model")
    assert "own-loop" not in shown_by(Run(), (), "my keras model")


@pytest.mark.parametrize(("words", "name"), [("resumed from step 3000", "checkpoint"), ("val_loss", "evaluation")])
def test_what_shows_a_file_that_was_read_and_an_evaluation(words: str, name: str) -> None:
    assert name in shown_by(Run(), (), words)
    assert name not in shown_by(Run(), (), "loss")


@pytest.mark.parametrize(("body", "possible"), [
    ("for x in data:\n    opt.zero_grad()\n    loss = f(x)\n    loss.backward()\n    opt.step()\n", False),
    ("for x in data:\n    loss = f(x)\n    loss.backward()\n    opt.step()\n    opt.zero_grad()\n", False),
    ("opt.zero_grad()\nfor x in data:\n    loss = f(x)\n    loss.backward()\n    opt.step()\n", True),
    ("for i, x in data:\n    f(x).backward()\n    opt.step()\n    if i % 9 == 0:\n        opt.zero_grad()\n", True),
    ("for x in data:\n    f(x).backward()\n    opt.step()\n", True),
    ("grads = jax.grad(f)(params, x)\n", False),
])
def test_gradients_stay_where_the_code_does_not_clear_them_beside_the_backward_pass(body: str, possible: bool) -> None:
    assert (sought := preconditions()["accum.zero-grad-missing"].in_code) is not None
    assert bool(sought.search(f"import torch\n{body}")) is possible


def test_forgetting_needs_something_that_was_learned_before(tmp_path: Path) -> None:
    log = "".join(f"epoch {e} loss {2 * 0.8 ** e:.3f} val_loss {max(0.8, 1.2 - e / 10) + max(0, e - 6) * 0.05:.3f}\n"
                  for e in range(1, 31))
    plain = seen(tmp_path, log).verdict.hypotheses
    assert plain[0].mode.id != "fit.forgetting"
    assert any(h.mode.id == "fit.forgetting" and h.unshown for h in plain) or (
        "fit.forgetting" not in {h.mode.id for h in plain})
    tuned = seen(tmp_path, "fine-tuning from a checkpoint\n" + log).verdict.hypotheses
    assert not any(h.unshown for h in tuned if h.mode.id == "fit.forgetting")


def test_a_hang_of_one_process_is_not_laid_at_ranks(tmp_path: Path) -> None:
    log = "".join(f"2026-03-02 09:{14 + i // 3}:{20 * (i % 3):02d} step {i} loss {3 - i / 40:.3f}\n" for i in range(60))
    ended = "slurmstepd: error: *** JOB 8 ON gpu1 CANCELLED AT 2026-03-02T21:14:07 DUE TO TIME LIMIT ***\n"
    found = seen(tmp_path, log + ended).verdict
    assert found.hypotheses[0].mode.id == "hang.stalled"
    assert all(h.unshown for h in found.hypotheses if h.mode.id.startswith("dist."))
    assert not any(h.mode.id == "data.corrupt-sample" for h in found.hypotheses)
