"""Lines of a log that a collector put into records of JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from traindx_tools.on_logs.reading import read_run

CLOCK = "2026-01-01T00:00:{:02d}.5Z"
LINES = [f"step {i} loss {2 / (1 + i):.4f}" for i in range(50)]
SHIPPED: dict[str, Callable[[int, str], dict[str, Any]]] = {
    "docker": lambda i, t: {"log": t + "\n", "stream": "stdout", "time": CLOCK.format(i)},
    "loki": lambda i, t: {"timestamp": CLOCK.format(i), "labels": {"pod": "t-0", "app": "t"}, "line": t},
    "vector": lambda i, t: {"host": "n1", "message": t, "source_type": "file", "timestamp": CLOCK.format(i)},
    "cloud": lambda i, t: {"insertId": f"a{i}", "resource": {"labels": {"pod": "t"}}, "textPayload": t,
                           "severity": "INFO"},
}


def _write(path: Path, records: list[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(r) + "\n" for r in records))
    return str(path)


@pytest.mark.parametrize("name", SHIPPED)
def test_metrics_and_errors_in_messages(name: str, tmp_path: Path) -> None:
    trace = ["Traceback (most recent call last):", '  File "train.py", line 3, in <module>', "    x / 0",
             "ZeroDivisionError: division by zero"]
    told = read_run(_write(tmp_path / "a.json", [SHIPPED[name](i, t) for i, t in enumerate([*LINES, *trace])]))
    (loss,) = told.series
    assert (loss.name, loss.step.tolist(), loss.line.tolist()) == ("loss", list(range(50)), list(range(1, 51)))
    assert loss.values.tolist() == [float(f"{2 / (1 + i):.4f}") for i in range(50)]
    assert [e.type for e in told.errors] == ["ZeroDivisionError"]


def test_each_pod_is_a_rank(tmp_path: Path) -> None:
    records = [{"pod": f"worker-{r}", "message": f"step {i} loss {2 / (1 + i) + r:.4f}"}
               for i in range(40) for r in range(3)]
    told = read_run(_write(tmp_path / "a.jsonl", records))
    assert [(s.rank, len(s), s.values[0]) for s in told.series] == [(0, 40, 2.0), (1, 40, 3.0), (2, 40, 4.0)]


def test_texts_of_a_data_set_are_no_messages(tmp_path: Path) -> None:
    """Sentences with numbers that look like a log, of which no number is a metric of any known name."""
    records = [{"id": f"q{i}", "question": f"Tom has {i} apples and gets {i + 2} more. How many are that?",
                "answer": f"{2 * i + 2}"} for i in range(60)]
    told = read_run(_write(tmp_path / "a.jsonl", records))
    assert told.series == ()
    assert told.artifacts[0].format == "data_records"


def test_broken_records_and_lines_between_cost_themselves_alone(tmp_path: Path) -> None:
    path = Path(_write(tmp_path / "a.json", [SHIPPED["docker"](i, t) for i, t in enumerate(LINES)]))
    lines = path.read_text().splitlines()
    lines[7:8] = ['{"log": "step 7 lo', "not JSON", "[1, 2]", '{"log": 5}']
    path.write_text("\n".join(lines))
    (loss,) = read_run(str(path)).series
    assert loss.step.tolist() == [i for i in range(50) if i != 7]
