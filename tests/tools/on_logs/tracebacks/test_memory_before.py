"""Where memory ran out, and what the memory that the log prints did before."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from traindx_tools.finding import Finding
from traindx_tools.on_logs import read_run
from traindx_tools.on_logs.tracebacks.l508_cuda_oom import check

MESSAGE = ("torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.28 GiB (GPU 0; 23.69 GiB total "
           "capacity; 20.02 GiB already allocated; 1.51 GiB free; 20.64 GiB reserved in total by PyTorch)")


def detector_log(folder: Path, memory: Callable[[int], object], records: int = 20) -> Path:
    """What MMEngine prints, with the memory that `memory` gives for each record, and the error behind."""
    lines = [f"2024/05/02 10:00:{i:02d} - mmengine - INFO - Epoch(train)  [1][{i * 50:4d}/7330]  lr: 2.0000e-02  "
             f"eta: 1 day, 2:30:00  time: 0.4012  data_time: 0.0102  memory: {memory(i)}  loss: {2 / (i + 3):.4f}"
             for i in range(1, records + 1)]
    lines += ["Traceback (most recent call last):", '  File "tools/train.py", line 117, in main',
              "    runner.train()", MESSAGE]
    path = folder / "20240502_100000.log"
    path.write_text("\n".join(lines) + "\n")
    return path


def told(path: Path) -> Finding:
    (finding,) = check(read_run([path]))
    return finding


@pytest.mark.parametrize(("memory", "said", "course"), [
    (lambda i: 9321, "(memory in the log was flat at 9.10 GiB from step 50 to 1,000: no growth before it)", "flat"),
    (lambda i: 9321 + 180 * i, "(memory in the log grew from 9.28 GiB to 12.62 GiB from step 50 to 1,000)", "grew"),
    (lambda i: 12000 if i == 7 else 9000,
     "(memory in the log lay between 8.79 GiB and 11.72 GiB from step 50 to 1,000, 8.79 GiB at the end)", "varied"),
    (lambda i: 9.3, "(memory in the log was flat at 9.3 from step 50 to 1,000: no growth before it)", "flat"),
])
def test_the_step_and_what_memory_did_before_are_told(tmp_path: Path, memory: Callable[[int], object], said: str,
                                                     course: str) -> None:
    finding = told(detector_log(tmp_path, memory))
    assert finding.statement.startswith(f"the GPU is out of memory after step 1,000 {said}, ")
    assert finding.measured["memory_course"] == course
    assert finding.measured["memory_records"] == 20


@pytest.mark.parametrize(("memory", "records"), [(lambda i: 9321, 2), (lambda i: "n/a", 20), (lambda i: "nan", 20)])
def test_without_records_of_memory_nothing_is_told_of_it(tmp_path: Path, memory: Callable[[int], object],
                                                         records: int) -> None:
    finding = told(detector_log(tmp_path, memory, records))
    assert "in the log" not in finding.statement
    assert "memory_course" not in finding.measured


def test_an_error_before_any_record_has_no_step(tmp_path: Path) -> None:
    assert told(detector_log(tmp_path, lambda i: 1, 0)).statement.startswith("the GPU is out of memory, ")
