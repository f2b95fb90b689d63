"""Lines found by the signs behind their numbers say what the reader of single lines says, whatever stands among
them."""

from __future__ import annotations

import gzip
import random
from collections.abc import Callable

import numpy as np
import pytest

from traindx_tools.on_logs.artifacts import Source
from traindx_tools.on_logs.readers import arrow_cells, block_source, line_columns, line_families, text_log
from traindx_tools.on_logs.readers.line_blocks import Block
from traindx_tools.on_logs.readers.line_patterns import Pattern, pattern_of
from traindx_tools.on_logs.readers.lines import LineStats
from traindx_tools.on_logs.readers.text_reading import TextReading
from traindx_tools.on_logs.run import Run
from traindx_tools.on_logs.tracebacks import read_errors
from traindx_tools.on_logs.tracebacks.parse import ErrorReading

pytest.importorskip("pyarrow")


def _trainer(rng: random.Random, step: int) -> str:
    told = {"loss": round(rng.random() * 3, 4), "grad_norm": rng.random() * 10 ** rng.randint(-6, 3),
            "learning_rate": 5e-5 * rng.random(), "epoch": round(step / 100, 2)}
    if rng.random() < 0.03:
        told["loss"] = rng.choice([float("nan"), float("inf"), 0.0, -1.5, 3])
    if rng.random() < 0.02:
        del told["grad_norm"]
    if rng.random() < 0.02:
        told = dict(reversed(told.items()))
    return repr({f"eval_{k}": v for k, v in told.items()} if step % 50 == 49 else told)


def _logged(rng: random.Random, step: int) -> str:
    clock = f"{step // 60 % 24:02d}:{step % 60:02d}:{rng.randrange(60):02d},{step % 1000:03d}"
    lr = rng.choice(["3.0e-04", "1e-05", "0.0001", "-0.0"])
    return (f"2026-01-{1 + step // 300:02d} {clock} {'WARNING' if step % 97 == 0 else 'INFO'} trainer: step {step} "
            f"loss {rng.random():.{rng.randint(0, 6)}f} grad_norm {rng.random() * 100:.3f} lr {lr}")


def _plain(rng: random.Random, step: int) -> str:
    return (f"it {step} | train loss {rng.random() * 4:.4f} | gnorm {rng.random():.3f} | lr {1e-4:.3e} | "
            f"{rng.randint(4, 120)} ms")


def _pairs(rng: random.Random, step: int) -> str:
    return (f"[rank0] epoch={step // 70} step={step:05d} loss={rng.random() * 3:.3f} acc={rng.random() * 100:.2f}% "
            f"time={step}s")


def _glued(rng: random.Random, step: int) -> str:
    return (f"Epoch {step // 40} Batch {step} Loss: {rng.uniform(-1, 1):.4f}, Acc: {rng.random():.3f} "
            f"took {rng.randint(1, 900)}ms")


FORMS = (_trainer, _logged, _plain, _pairs, _glued)
ODD = (
    "", " ", "Epoch 3/10", "=== epoch 2 ===", "Traceback (most recent call last):", '  File "x.py", line 3, in f',
    "ValueError: bad 3", "| epoch | loss |", "\x1b[31mloss 2.5\x1b[0m", "loss 3.5\rloss 4.5\rloss 2.5", "    acc 0.5",
    "step 3: 100%|####| 5/5 [00:01<00:00, loss=0.5]", "it 1,234 | train loss 0x1F | gnorm .5 | lr 5. | 7 ms",
    "step 7\r", "Schritt 3 Verlust 0.5 é", "it 7 | train loss 1.5.2 | gnorm 2 5. | lr 1e-5 | 8 ms",
    "CUDA error: out of memory", "x" * 3_000, "0.5 1.5 2.5", "validation: val_loss 0.25 (step 12)",
    "shard_0041 opened", "it  5 | train loss 2.0 | gnorm 0.1 | lr 1.0e-04 | 9 ms")


def _text(form: Callable[[random.Random, int], str], odd: float, seed: int) -> bytes:
    rng = random.Random(seed)
    lines: list[str] = []
    for step in range(1, 500):
        line = form(rng, step)
        if rng.random() < odd:
            lines.append(rng.choice(ODD))
        if rng.random() < odd / 2:
            at = rng.randrange(len(line))
            line = line[:at] + rng.choice("0123456789naexE.-+ ,:|={}\r\té") + line[at + rng.randint(0, 1):]
        lines.append(line)
    text = "\n".join(lines)
    return text[: len(text) - rng.randint(0, 30)].encode()


def _told(run: Run) -> tuple[object, ...]:
    series = [(s.name, s.original, s.group, s.rank, s.values.tobytes(), s.step.tobytes(), s.epoch.tobytes(),
               s.time.tobytes(), s.line.tobytes()) for s in run.series]  # fmt: skip
    return series, repr(run.notes), run.planned_steps, run.planned_unit, run.world_size, run.artifacts


def _same(source: Source) -> None:
    errors = ErrorReading(source.name)
    run = text_log.read(source, errors)
    stats, reading = LineStats(), TextReading(source.name)
    for number, text in text_log.lines_of(source, stats):
        reading.line(number, text)
    assert _told(run) == _told(reading.finish(f"{stats.cut} lines longer than 64 KiB were cut" if stats.cut else ""))
    assert errors.finish() == read_errors(text_log.lines_of(source), source.name)


@pytest.fixture(autouse=True)
def found(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many lines each look for a pattern has found; blocks are small and few lines are enough."""
    for module in (line_columns, line_families, arrow_cells):
        monkeypatch.setattr(module, "FEWEST", 4)
    monkeypatch.setattr(block_source, "CHUNK", 4_000)
    lines: list[int] = []
    look = Pattern.found

    def counted(self: Pattern, *given: object) -> object:
        told = look(self, *given)  # type: ignore[arg-type]
        lines.append(0 if told is None else len(told[0]))
        return told

    monkeypatch.setattr(Pattern, "found", counted)
    return lines


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("odd", [0.0, 0.02, 0.2])
def test_all_forms(form: Callable[[random.Random, int], str], odd: float, found: list[int]) -> None:
    for seed in range(2):
        _same(Source("a.log", data=_text(form, odd, seed)))
    if form is not _pairs:  # a rank is for the reader of single lines
        assert sum(found) > (500 if odd < 0.1 else 0)


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_all_forms_again_and_again(form: Callable[[random.Random, int], str], monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(18):
        monkeypatch.setattr(block_source, "CHUNK", (1_000, 4_000, 1 << 20)[seed % 3])
        _same(Source("a.log", data=_text(form, (0.01, 0.1, 0.4)[seed // 3 % 3], seed)))


def test_packed_and_mixed() -> None:
    _same(Source("a.log.gz", data=gzip.compress(_text(_plain, 0.02, 5))))
    rng = random.Random(1)
    mixed = "\n".join(rng.choice(FORMS)(rng, step) for step in range(1, 900))
    _same(Source("a.log", data=mixed.encode()))


def _pattern(line: bytes) -> Pattern | None:
    reading = TextReading("a.log")
    shape = reading.learn(line.decode(), line)
    return pattern_of(line, shape.spans, shape.prefix.end)


@pytest.mark.parametrize("odd", [
    b"it x1 | loss 2.5", b"it  1 | loss 2.5", b"it 1 | loss 25", b"it 1 | loss 2.5.", b"it 1 | loss nan",
    b"it 1.0 | loss 2.5", b"it 0x1F | loss 2.5", b"it -1 | loss 2.5", b"it 1 | Loss 2.5", b"it 1 | loss 2.5 ",
    b"it 1 | loss ", b"it | loss 2.5", b"it 1 | loss 2.5 | 7", b"it 1 loss 2.5", b" it 1 | loss 2.5",
    b"it 1 | loss 0x1.5p3"])
def test_a_line_that_differs_is_not_taken(odd: bytes) -> None:
    """Nor is what stands around it lost, but where pyarrow could not read a number of it: then all are left."""
    pattern = _pattern(b"it 7 | loss 1.25")
    assert pattern is not None
    block = Block(b"it 8 | loss 1.5\n" + odd + b"\nit 12345 | loss -1.5e-07\n", 1)
    told = pattern.found(block, block.cut_at(pattern.separators, pattern.order))
    if told is not None:
        assert told[0].tolist() == [0, 2]
        assert [n.tolist() for n in told[1]] == [[8.0, 12345.0], [1.5, -1.5e-07]]


@pytest.mark.parametrize("line", [b"loss2 2.5", "Verlust é 2.5".encode(), b"took 1:02:03 loss 2.5", b"no number",
                                  b"step 3 radius 0.212+-0.083"])
def test_lines_that_make_no_pattern(line: bytes) -> None:
    assert _pattern(line) is None


def test_numbers_are_those_of_float() -> None:
    rng = random.Random(0)
    written = [repr(rng.random() * 10.0 ** rng.randint(-300, 300)) for _ in range(2_000)]
    block = Block("".join(f"it {i} | loss {w}\n" for i, w in enumerate(written)).encode(), 1)
    pattern = _pattern(b"it 7 | loss 1.25")
    assert pattern is not None
    told = pattern.found(block, block.cut_at(pattern.separators, pattern.order))
    assert told is not None
    places, (steps, losses) = told
    assert len(places) == sum("." in w for w in written)
    assert steps.tolist() == places.tolist()
    assert losses.tobytes() == np.array([float(written[i]) for i in places]).tobytes()


def test_deviations_behind_a_sign() -> None:
    """Between two numbers stands nothing but what numbers hold themselves."""
    text = "".join(f"step {i} loss {1 / i:.4f} radius 0.{i % 9}12+-0.083\n" for i in range(1, 200))
    _same(Source("a.log", data=text.encode()))
