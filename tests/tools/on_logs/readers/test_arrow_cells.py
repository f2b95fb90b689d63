"""Numbers cut out by pyarrow are those that the line by itself gives; what it cannot be sure of it leaves alone."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest

from traindx_tools.on_logs.readers.arrow_cells import cells_of, converted, with_prefix
from traindx_tools.on_logs.readers.line_blocks import Block

pytest.importorskip("pyarrow")
_NUMBER = re.compile(rb"-?[\d.]+(?:e[+-]?\d+)?")


def _spans(line: bytes, start: int = 0) -> list[tuple[int, int]]:
    return [m.span() for m in _NUMBER.finditer(line, start) if any(c in b"0123456789" for c in m.group())]


def _block(*lines: bytes) -> Block:
    return Block(b"\n".join(lines) + b"\n", 1)


def test_digits_of_any_count_are_converted_to_the_last_bit() -> None:
    rng = random.Random(0)
    rows = [(rng.randrange(10 ** rng.randint(1, 9)), rng.random() * 10 ** rng.randint(-9, 5)) for _ in range(3_000)]
    lines = [f"it {a} | loss {b!r}, rest".encode() for a, b in rows]
    with_point = [i for i, line in enumerate(lines) if b"." in line and b"e-" not in line]
    block = _block(*lines)
    first = lines[with_point[0]]
    cells = cells_of(first, _spans(first))
    assert cells is not None
    found = converted(block, np.array(with_point), cells)
    assert found is not None
    assert [tuple(r) for r in zip(*(f.tolist() for f in found), strict=True)] == [
        (float(rows[i][0]), rows[i][1]) for i in with_point]


@pytest.mark.parametrize("odd", [
    b"it 1 | lo5ss 2.5", b"it1  | loss 2.5", b"it 1 | loss 25.", b"it 1 |3 loss .5", b"it  | loss 12.5",
    b"it 1 | loss . 5", b"it 1 | loss 2.5 ", b"it - | loss 2.5"])
def test_a_digit_elsewhere_refuses_all_lines(odd: bytes) -> None:
    line = b"it 7 | loss 1.25"
    cells = cells_of(line, _spans(line))
    assert cells is not None
    assert converted(_block(line, line), np.arange(2), cells) is not None
    found = converted(_block(line, odd), np.arange(2), cells)
    assert found is None or odd == b"it 1 | loss 25."
    assert converted(_block(line, odd), np.arange(2), cells, strict=True) is None


@pytest.mark.parametrize("line", [
    b"[2/31] took 1:02:03 loss 2.5", b"2024-01-02 loss 2.5", b"loss2 2.5", b"loss 1,234.5", b"3 h 12 min",
    b"50ms", b"v1.2.3 loss 2.5", b"1/2/3 loss 2.5", "Verlust é 2.5".encode()])
def test_what_more_digits_could_change_is_left_alone(line: bytes) -> None:
    assert cells_of(line, _spans(line)) is None


def test_the_prefix_has_to_be_the_same() -> None:
    line = b"2026-01-01 10:00:00,123 INFO step 5 loss 2.5"
    start = line.index(b"step")
    cells = cells_of(line, _spans(line, start), start)
    assert cells is not None
    assert cells.prefix == b"0000-00-00 00:00:00,000 INFO "
    block = _block(line, b"2026-01-01 9:00:000,123 INFO step 5 loss 2.5",
                   b"2026-01-01 10:00:01,123 INFO step 55 loss .25")
    assert with_prefix(block, np.arange(3), cells.prefix).tolist() == [True, False, True]
    found = converted(block, np.array([0, 2]), cells)
    assert found is not None
    assert [f.tolist() for f in found] == [[5.0, 55.0], [2.5, 0.25]]


@pytest.mark.parametrize(("number", "taken"), [
    (b"0.5", True), (b"-0.5", True), (b"10.5", True), (b"1.5e-05", True), (b"00.5", False), (b"05.5", False),
    (b"-01.5", False), (b".5", False), (b"5.", False), (b"-.5", False)])
def test_as_json_writes_numbers(number: bytes, taken: bool) -> None:
    first = b'{"loss": 1.5e-07}' if b"e" in number else b'{"loss": -1.5}' if b"-" in number else b'{"loss": 1.5}'
    cells = cells_of(first, _spans(first))
    assert cells is not None
    found = converted(_block(first, b'{"loss": ' + number + b"}"), np.arange(2), cells, strict=True)
    assert (found is not None) == taken
