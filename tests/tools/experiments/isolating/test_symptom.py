"""Conditions on a run: there, not there, or not to be told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from traindx_tools.errors import BadUsage
from traindx_tools.experiments.isolating.outcomes import Shown
from traindx_tools.experiments.isolating.symptom import parse_symptom
from traindx_tools.experiments.trace import Curve, Trace


def run(folder: Path, output: str = "", code: int | None = 0, **more: Any) -> Trace:
    (folder / "output.log").write_text(output)
    curves = {k: Curve(np.arange(len(v), dtype=float), np.array(v, dtype=float))
              for k, v in more.pop("curves", {}).items()}
    return Trace(folder, curves, ended=not more.get("stopped"), exit_code=code, **more)


FAIL, PASS, UNRESOLVED = Shown.FAIL, Shown.PASS, Shown.UNRESOLVED


@pytest.mark.parametrize(("condition", "given", "shown"), [
    ("exit", {"code": 1}, FAIL),
    ("exit", {"code": 0}, PASS),
    ("exit", {"code": None, "stopped": "time"}, UNRESOLVED),
    ("exit=3", {"code": 3}, FAIL),
    ("exit=3", {"code": 1}, UNRESOLVED),
    ("timeout", {"code": None, "stopped": "time"}, FAIL),
    ("timeout", {}, PASS),
    ("output~RuntimeError.*shape", {"output": "RuntimeError: bad shape", "code": 1}, FAIL),
    ("output~RuntimeError.*shape", {"output": "KeyError", "code": 1}, UNRESOLVED),
    ("output~RuntimeError.*shape", {"output": "done"}, PASS),
    ("nan", {"output": "step 3 train_loss: nan"}, FAIL),
    ("nan", {"output": "nan values were dropped, loss 0.5"}, PASS),
    ("nan", {"curves": {"validation loss": [1, float("inf")]}}, FAIL),
    ("nan", {"output": "loss 0.5", "code": 1}, UNRESOLVED),
    ("nan(score)", {"output": "score=nan"}, FAIL),
    ("nan(score)", {"output": "score=1"}, PASS),
    ("nan(score)", {"output": ""}, UNRESOLVED),
    ("loss>1", {"output": "loss 0.5\nloss 1.5"}, FAIL),
    ("loss>1", {"output": "loss 1.5\nloss 0.5"}, PASS),
    ("loss>1", {"output": "loss 1.5", "code": 1}, UNRESOLVED),
    ("loss>1", {"output": "nothing"}, UNRESOLVED),
    ("loss>1", {"output": "loss nan"}, UNRESOLVED),
    ("max(loss) > 1", {"output": "loss 1.5\nloss 0.5", "code": 1}, FAIL),
    ("max(loss)>1", {"output": "loss 0.5", "code": 1}, UNRESOLVED),
    ("val_acc<=0.9", {"curves": {"validation acc": [0.1, 0.95]}}, PASS),
    ("val_acc<=0.9", {"curves": {"validation acc": [0.1, 0.9]}}, FAIL),
    ("nonfinite", {"curves": {"loss": [1, float("nan")]}}, FAIL),
    ("nonfinite", {"curves": {"loss": [1, 0.5]}}, PASS),
    ("error:shape", {"code": 1, "error": "RuntimeError: a shape"}, FAIL),
    ("error:shape", {"code": 1, "error": "KeyError: x"}, UNRESOLVED),
    ("level:loss<0.4", {"curves": {"loss": [1, 0.9, 0.9, 0.9, 0.9]}}, FAIL),
    ("level:loss<0.4", {"curves": {"loss": [1, 0.1, 0.1, 0.1, 0.1]}}, PASS),
    ("level:loss<0.4", {}, UNRESOLVED),
    ("mean(loss)>=1", {"curves": {"loss": [0, 2]}}, FAIL),
])  # fmt: skip
def test_a_condition(tmp_path: Path, condition: str, given: dict[str, Any], shown: Shown) -> None:
    assert parse_symptom([condition]).judge(run(tmp_path, **given)).shown is shown


def test_one_of_several_is_enough(tmp_path: Path) -> None:
    symptom = parse_symptom(["nan", "loss>1"])
    assert symptom.judge(run(tmp_path, "loss nan")).shown is FAIL
    assert symptom.judge(run(tmp_path, "loss 2")).shown is FAIL
    assert symptom.judge(run(tmp_path, "loss 0")).shown is PASS
    assert symptom.text == "nan or loss>1"
    assert parse_symptom([]).text == "exit"


@pytest.mark.parametrize("text", ["", "loss", "loss>x", "output~(", "output~", "max()>1x", "level:loss", "gap"])
def test_what_is_no_condition(text: str) -> None:
    with pytest.raises(BadUsage, match="is no"):
        parse_symptom([text])
