"""What a logger writes of each record (process, line, level, clock) is no metric; what the program measured is one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from traindx_tools.on_logs import Run, read_run

Record = dict[str, Any]


def loguru(i: int, message: str, told: Record) -> Record:
    """As loguru 0.7.3 writes with `serialize=True`."""
    return {"text": f"2026-12-03 13:47:58.608 | INFO     | __main__:f:9 - {message}\n", "record": {
        "elapsed": {"repr": "0:00:00.009330", "seconds": 0.00933 + i}, "exception": None, "extra": told,
        "file": {"name": "train.py", "path": "train.py"}, "function": "f",
        "level": {"icon": "i", "name": "INFO", "no": 20}, "line": 9 if message == "train" else 31, "message": message,
        "module": "train", "name": "__main__", "process": {"id": 19395, "name": "MainProcess"},
        "thread": {"id": 139674274978688, "name": "MainThread"},
        "time": {"repr": "2026-12-03 13:47:58.608948+00:00", "timestamp": 1796305678.608948 + i}}}


def structlog(i: int, message: str, told: Record) -> Record:
    """As structlog 26.1 writes with its JSONRenderer and CallsiteParameterAdder."""
    return {**told, "event": message, "level": "info", "filename": "train.py", "process": 19395,
            "thread": 139674274978688, "lineno": 16 if message == "train" else 31,
            "timestamp": f"2026-12-03T13:47:{i % 60:02d}.674621Z"}


def python_json_logger(i: int, message: str, told: Record) -> Record:
    """As python-json-logger 4.2 writes with the attributes of `logging` in its format."""
    return {"asctime": "2026-12-03 13:47:58,678", "levelname": "INFO", "levelno": 20, "name": "x", "process": 19395,
            "thread": 139674274978688, "lineno": 23 if message == "train" else 31, "msecs": (678.0 + 37 * i) % 1000,
            "relativeCreated": 134.1 + 1000 * i, "created": 1796305678.678 + i, "message": message, **told}


def pino(i: int, message: str, told: Record) -> Record:
    return {"level": 30, "time": 1796305678000 + 5000 * i, "pid": 4242, "hostname": "a", "port": 8080, "v": 1, **told,
            "msg": message}


def tracing(i: int, message: str, told: Record) -> Record:
    return {"timestamp": f"2026-12-03T13:47:{i % 60:02d}Z", "level": "INFO", "fields": {"message": message, **told},
            "target": "trainer", "threadId": 7, "line_number": 40 + i % 2}


LOGGERS = (loguru, structlog, python_json_logger, pino, tracing)


def written(folder: Path, logger: Callable[[int, str, Record], Record], **more: Any) -> Run:
    lines = []
    for i in range(1, 41):
        lines.append(logger(i, "train", {"step": i, "loss": 3 - i / 20, "lr": 0.001, **{
            k: v(i) if callable(v) else v for k, v in more.items()}}))
        if i % 10 == 0:
            lines.append(logger(i, "validation", {"step": i, "val_loss": 3.2 - i / 20}))
    (folder / "run.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return read_run([folder / "run.jsonl"])


def named(run: Run) -> set[tuple[str, str]]:
    return {(s.group, s.name) for s in run.series}


MEASURED = {("train", "loss"), ("train", "learning_rate"), ("validation", "loss")}


@pytest.mark.parametrize("logger", LOGGERS)
def test_what_the_logger_itself_says_is_no_metric(tmp_path: Path, logger: Callable[[int, str, Record], Record]) -> None:
    run = written(tmp_path, logger)
    assert named(run) == MEASURED
    (loss,) = [s for s in run.series if (s.name, s.group) == ("loss", "train")]
    assert loss.step.tolist() == list(range(1, 41))
    assert loss.values == pytest.approx([3 - i / 20 for i in range(1, 41)])
    assert "its logger's own numbers are no metrics" in run.artifacts[0].note


@pytest.mark.parametrize("logger", LOGGERS)
def test_unknown_names_whose_numbers_move_are_metrics(tmp_path: Path,
                                                      logger: Callable[[int, str, Record], Record]) -> None:
    run = written(tmp_path, logger, harvest=lambda i: i * 7 % 13, drift=lambda i: 0.25 + i / 1000, accuracy=1.0)
    assert {n for _, n in named(run)} == {"loss", "learning_rate", "harvest", "drift", "accuracy"}


def test_records_of_metrics_alone_keep_what_stays_the_same(tmp_path: Path) -> None:
    """No logger wrote them: a number that never moves may be what is wrong."""
    run = written(tmp_path, lambda i, message, told: told, active_heads=8, stuck=0)
    assert named(run) == MEASURED | {("train", "active_heads"), ("train", "stuck")}


def test_a_count_that_stays_at_0_is_kept_in_a_loggers_record(tmp_path: Path) -> None:
    assert ("train", "matches") in named(written(tmp_path, structlog, matches=0))


@pytest.mark.parametrize("logger", LOGGERS)
def test_damaged_records_change_nothing(tmp_path: Path, logger: Callable[[int, str, Record], Record]) -> None:
    written(tmp_path, logger)
    path = tmp_path / "run.jsonl"
    lines = path.read_text().splitlines()
    odd = json.dumps({"level": None, "message": {"a": []}, "process": "main", "lineno": [1], "step": 1})
    path.write_text("\n".join([*lines[:20], lines[20][:40], odd, "{", *lines[21:]]))
    assert named(read_run([path])) == MEASURED
