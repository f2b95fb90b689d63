"""Properties of the readers: what was written is read back; damage never crashes or hangs; steps come from the text."""

from __future__ import annotations

import contextlib
import io
import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from traindx_tools.errors import UnreadableInput
from traindx_tools.on_logs import Run, read_run
from traindx_tools.on_logs.readers.lines import read_lines
from traindx_tools.on_logs.readers.numbers import TOKEN

LOGS = Path(__file__).parents[3] / "fixtures" / "logs"
TEXTS = sorted((LOGS / "lines").glob("*")) + sorted(LOGS.glob("*.log"))
FAST = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])

values = st.floats(allow_nan=True, allow_infinity=True, width=32)
records = st.lists(st.tuples(values, values), min_size=2, max_size=30)


def text_of(value: float) -> str:
    return repr(value)


FORMATS = {
    "key=value": lambda i, a, b: f"step={i} loss={text_of(a)} grad_norm={text_of(b)}",
    "key: value": lambda i, a, b: f"Step: {i}, Loss: {text_of(a)}, Grad Norm: {text_of(b)}",
    "key value": lambda i, a, b: f"iter {i:5d} loss {text_of(a)} gnorm {text_of(b)}",
    "pipes": lambda i, a, b: f"[{i}/999] | loss {text_of(a)} | grad_norm {text_of(b)} |",
    "dashes": lambda i, a, b: f"step:{i} - loss:{text_of(a)} - grad_norm:{text_of(b)}",
    "dict": lambda i, a, b: str({"step": i, "loss": a, "grad_norm": b}),
    "quoted dict": lambda i, a, b: str({"step": str(i), "loss": str(a), "grad_norm": str(b)}),
    "json": lambda i, a, b: json.dumps({"step": i, "loss": a, "grad_norm": b}),
    "json behind a prefix": lambda i, a, b: "2026-11-27 21:17:14,614 INFO " + json.dumps(
        {"step": i, "loss": a, "grad_norm": b}),
    "logging": lambda i, a, b: f"2026-11-27 21:17:14,614 - train - INFO - step {i} loss {text_of(a)} grad {text_of(b)}",
    "rank": lambda i, a, b: f"[rank0]: step {i} loss {text_of(a)} grad_norm {text_of(b)}",
    "tabs": lambda i, a, b: f"step {i}\tloss {text_of(a)}\tgrad_norm {text_of(b)}",
}


def check(run: Run, rows: list[tuple[float, float]]) -> None:
    for name, column in (("loss", 0), ("grad_norm", 1)):
        series = list(run.find(name, group="train"))
        assert len(series) == 1, [(s.name, s.original, len(s)) for s in run.series]
        np.testing.assert_array_equal(series[0].values, [r[column] for r in rows])
        assert series[0].step.tolist() == list(range(1, len(rows) + 1))
        assert series[0].line.tolist() == list(range(1, len(rows) + 1))
    assert {s.name for s in run.series} == {"loss", "grad_norm"}


@pytest.mark.parametrize("form", FORMATS)
@given(rows=records)
@FAST
def test_what_was_printed_is_read_back(form: str, rows: list[tuple[float, float]]) -> None:
    text = "\n".join(FORMATS[form](i, a, b) for i, (a, b) in enumerate(rows, 1)) + "\n"
    check(read_run(["-"], stdin=text.encode()), rows)


@given(rows=records)
@FAST
def test_csv_is_read_back(rows: list[tuple[float, float]]) -> None:
    text = "step,loss,grad_norm\n" + "".join(f"{i},{a!r},{b!r}\n" for i, (a, b) in enumerate(rows, 1))
    run = read_run(["-"], stdin=text.encode())
    assert run.loss is not None
    np.testing.assert_array_equal(run.loss.values, [a for a, _ in rows])
    assert run.loss.step.tolist() == list(range(1, len(rows) + 1))


@given(data=st.data())
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_mangled_logs_never_crash(data: st.DataObject) -> None:
    original = data.draw(st.sampled_from(TEXTS)).read_bytes()[:6000]
    mangled = bytearray(original[data.draw(st.integers(0, len(original) // 2)):])
    for at, byte in data.draw(st.lists(st.tuples(st.integers(0, max(len(mangled) - 1, 0)), st.integers(0, 255)),
                                       max_size=30)):
        mangled[at] = byte
    other = data.draw(st.sampled_from(TEXTS)).read_bytes()[:2000]
    at = data.draw(st.integers(0, len(mangled)))
    between = data.draw(st.sampled_from([b"", b"\r", b"\n", b"\x08\x08", other]))
    joined = bytes(mangled[:at]) + between + bytes(mangled[at:])
    try:
        run = read_run(["-"], stdin=joined)
    except UnreadableInput:
        return
    for s in run.series:
        assert len(s.values) == len(s.step) == len(s.epoch) == len(s.time) == len(s.line) > 0
        assert s.group in ("train", "validation", "test")
        assert (np.diff(s.line) >= 0).all()
        assert s.unit in ("step", "epoch", "line")


@given(st.binary(max_size=3000))
@settings(max_examples=40, deadline=None)
def test_any_bytes_never_crash(data: bytes) -> None:
    with contextlib.suppress(UnreadableInput):
        read_run(["-"], stdin=data)


@given(flips=st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), max_size=8), cut=st.integers(0, 10_000))
@FAST
def test_mangled_event_files_never_crash(flips: list[tuple[int, int]], cut: int) -> None:
    data = bytearray((LOGS / "events.tfevents").read_bytes()[:cut])
    for at, byte in flips:
        if at < len(data):
            data[at] = byte
    with contextlib.suppress(UnreadableInput):
        read_run(["-"], stdin=bytes(data))


_PIECES = st.sampled_from(["step 12", "epoch 3", "[7/90]", "loss 0.25", "loss=nan", "acc: 0.5", "lr 1e-3", "hello", "|",
                           "-", "epoch 2/5", "iter 40/80", "took 3.5 s", "at", "val_loss 0.75", "100%", "{'step': 9}",
                           "12.5MB"])


@given(st.lists(st.lists(_PIECES, min_size=1, max_size=6).map(" ".join), min_size=1, max_size=12))
@settings(max_examples=40, deadline=None)
def test_steps_and_values_stand_in_the_text(lines: list[str]) -> None:
    run = read_run(["-"], stdin="\n".join(lines).encode())
    numbers = {float(n) for n in re.findall(r"\d+\.?\d*(?:e-?\d+)?", "\n".join(lines))}
    derived = any("step = " in a.note for a in run.artifacts)
    for s in run.series:
        assert derived or set(s.step[np.isfinite(s.step)].tolist()) <= numbers
        assert set(s.epoch[np.isfinite(s.epoch)].tolist()) <= numbers


@given(st.text(alphabet="ab \r\n\x08\x1b[mK1.", max_size=400), st.integers(1, 7))
@settings(max_examples=40, deadline=None)
def test_lines_do_not_depend_on_how_the_bytes_arrive(text: str, size: int) -> None:
    class Slow:
        def __init__(self, data: bytes) -> None:
            self.data = data

        def read(self, _: int) -> bytes:
            piece, self.data = self.data[:size], self.data[size:]
            return piece

    data = text.encode()
    at_once = list(read_lines(io.BytesIO(data), "utf-8-sig"))
    assert list(read_lines(Slow(data), "utf-8-sig")) == at_once  # type: ignore[arg-type]
    assert all("\n" not in line for _, line in at_once)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_printed_float_is_one_token(number: float) -> None:
    assert TOKEN.split(f"x {number!r} y")[1::2] == [repr(number)]


def test_infinities_keep_their_sign_in_every_format() -> None:
    rows = [(math.inf, 1.0), (-math.inf, math.nan), (0.5, -0.0)]
    for form, line in FORMATS.items():
        text = "\n".join(line(i, a, b) for i, (a, b) in enumerate(rows, 1))
        assert [s.values.tolist() for s in read_run(["-"], stdin=text.encode()).find("loss")] == [
            [math.inf, -math.inf, 0.5]], form
