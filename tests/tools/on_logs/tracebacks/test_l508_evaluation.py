"""Out of memory in the evaluation after a training that fitted."""

from __future__ import annotations

from pathlib import Path

import pytest

from traindx_tools.on_logs import read_run
from traindx_tools.on_logs.tracebacks.l508_cuda_oom import check

MESSAGE = ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 512.00 MiB. GPU 0 has a total capacity of "
           "23.64 GiB of which 371.69 MiB is free. Of the allocated memory 22.41 GiB is allocated by PyTorch, and "
           "411.20 MiB is reserved by PyTorch but unallocated.")


def kind(tmp_path: Path, function: str, records: int) -> object:
    lines = [f"step {i} loss {1.0 - 0.1 * i:.2f}" for i in range(records)]
    lines += ["Traceback (most recent call last):",
              '  File "/home/me/project/train.py", line 60, in <module>', "    main()",
              f'  File "/home/me/project/train.py", line 41, in {function}', "    y = model(x)", MESSAGE]
    (tmp_path / "log.txt").write_text("\n".join(lines) + "\n")
    (found,) = check(read_run([tmp_path / "log.txt"]))
    return found.measured["kind"]


@pytest.mark.parametrize("function", ["evaluate", "validation_epoch", "run_eval", "predict_all", "test"])
def test_it_is_the_evaluation_that_ran_out(tmp_path: Path, function: str) -> None:
    assert kind(tmp_path, function, 4) == "evaluation"


@pytest.mark.parametrize(("function", "records"), [("train_step", 4), ("latest_step", 4), ("evaluate", 0)])
def test_a_training_step_or_a_first_evaluation_is_not(tmp_path: Path, function: str, records: int) -> None:
    assert kind(tmp_path, function, records) != "evaluation"


@pytest.mark.parametrize(("function", "code", "phase"), [
    ("train_epoch", "loss.backward()", "training"), ("step", "scaler.step(optimizer)", "training"),
    ("evaluate", "y = model(x)", "evaluation"), ("forward", "y = model(x)", None)])
def test_the_phase_in_which_it_ran_out(function: str, code: str, phase: str | None, tmp_path: Path) -> None:
    lines = [f"step {i} loss {1.0 - 0.1 * i:.2f}" for i in range(4)]
    lines += ["Traceback (most recent call last):", '  File "/home/me/project/run.py", line 60, in <module>',
              "    main()", f'  File "/home/me/project/run.py", line 41, in {function}', f"    {code}", MESSAGE]
    (tmp_path / "log.txt").write_text("\n".join(lines) + "\n")
    (found,) = check(read_run([tmp_path / "log.txt"]))
    assert found.measured.get("phase") == phase
