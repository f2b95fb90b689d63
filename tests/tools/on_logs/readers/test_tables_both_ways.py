"""Odd tables of metrics tell the same whether pyarrow reads them in blocks or each row is read by itself."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from traindx_tools.on_logs.artifacts import Source
from traindx_tools.on_logs.readers import arrow_rows, block_source, delimited
from traindx_tools.on_logs.run import Run

ROWS = 3_000
HEADER = "step,epoch,train_loss,grad_norm,lr,val_loss"


def _row(step: int, rng: random.Random) -> list[str]:
    held_out = repr(rng.random()) if step % 100 == 0 else ""
    return [str(step), str(step // 1000), repr(rng.random()), repr(rng.gauss(2, 1)), f"{rng.random():.3e}", held_out]


def _table(change: Callable[[list[str], int], list[str]] = lambda row, _: row, rows: int = ROWS) -> str:
    rng = random.Random(0)
    return "\n".join([HEADER, *(",".join(change(_row(step, rng), step)) for step in range(1, rows + 1))]) + "\n"


def _with_cell(column: int, *texts: str, every: int = 97) -> str:
    def change(row: list[str], step: int) -> list[str]:
        if step % every == 0:
            row[column] = texts[step // every % len(texts)]
        return row
    return _table(change)


def _stops(row: list[str], step: int) -> list[str]:
    return row[:3] if step % 500 == 0 else row


ODD = {
    "plain": _table(),
    "quotes": _with_cell(2, '"0.5"', '" 0.25 "', '"1,5"', '"a ""quoted"" one"'),
    "empty cells": _with_cell(2, "", " ", "\t"),
    "no numbers": _with_cell(2, "NaN", "nan", "inf", "-Infinity", "INF", "None", "null", "N/A", "-"),
    "texts": _with_cell(3, "skipped", "0x1F", "1_000", "12%", "1e999", "1.", ".5", "+3", "1e+05", "٣"),
    "odd steps": _with_cell(0, "", "1.5", "nan", "inf", "1e3", "x"),
    "no loss at all": _table(lambda row, _: [*row[:2], "", "", "", ""]),
    "restart": _table() + _table(rows=500).split("\n", 1)[1],
    "header again": _table(rows=700) + _table(rows=900),
    "another header": _table(rows=700) + "step,epoch,train_loss,acc\n" + "\n".join(
        f"{i},1,{i / 900},{i / 1000}" for i in range(900)) + "\n",
    "damaged rows": _table(_stops),
    "comments and empty lines": _table(rows=500) + "\n# resumed\n\n" + _table(rows=500).split("\n", 1)[1],
    "carriage returns": _table().replace("\n", "\r\n"),
    "one carriage return": _table(rows=900).replace("\n", "\r\n", 40),
    "byte order mark": "\ufeff" + _table(),
    "no last newline": _table().rstrip("\n"),
    "tabs": _table().replace(",", "\t"),
    "semicolons": _table().replace(",", ";"),
    "nothing but a header": HEADER + "\n",
    "cut in a row": _table()[:-40],
    "binary in it": _table(rows=800) + "\0\0\0\n" + _table(rows=800).split("\n", 1)[1],
}


def _told(run: Run) -> tuple[object, ...]:
    series = [(s.name, s.original, s.group, s.rank, s.values.tobytes(), s.step.tobytes(), s.epoch.tobytes(),
               s.time.tobytes(), s.line.tobytes()) for s in run.series]
    return series, repr(run.notes), run.planned_steps, run.artifacts


def _read(text: str) -> tuple[object, ...]:
    return _told(delimited.read(Source("metrics.csv", data=text.encode())))


@pytest.mark.parametrize(("chunk", "cores"), [(block_source.CHUNK, 1), (20_000, 1), (20_000, 3)])
@pytest.mark.parametrize("what", ODD)
def test_both_ways_tell_the_same(what: str, chunk: int, cores: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block_source, "CHUNK", chunk)
    monkeypatch.setattr(block_source, "_cores", lambda: cores)
    together = _read(ODD[what])
    monkeypatch.setattr(arrow_rows, "_pyarrow", lambda: None)
    assert together == _read(ODD[what])


def test_mangled_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(1)
    mangled = []
    for _ in range(30):
        text = list(_table(rows=400))
        for _ in range(rng.randint(1, 12)):
            text[rng.randrange(len(HEADER) + 1, len(text))] = rng.choice('",\n#\r .+-eEx_%é\0')
        mangled.append("".join(text))
    together = [_read(text) for text in mangled]
    monkeypatch.setattr(arrow_rows, "_pyarrow", lambda: None)
    assert together == [_read(text) for text in mangled]


def test_a_plain_table_is_taken_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test that both ways are alike would pass as well where there is one way only."""
    alone: list[int] = []
    line = delimited._Table.line

    def counted(table: delimited._Table, number: int, text: str) -> None:
        alone.append(number)
        line(table, number, text)

    monkeypatch.setattr(delimited._Table, "line", counted)
    run = delimited.read(Source("metrics.csv", data=ODD["plain"].encode()))
    assert alone == [1], "the header"
    loss = run.first("loss", group="train")
    assert loss is not None
    assert (len(loss), loss.step[-1], loss.line[-1]) == (ROWS, ROWS, ROWS + 1)
