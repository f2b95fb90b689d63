"""Small edits of a source: each is another program that still parses, and what must not be touched is not."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

from traindx_tools.errors import BadUsage
from traindx_tools.experiments.change import Change, parse_change
from traindx_tools.experiments.interventions import prepare
from traindx_tools.experiments.interventions.writing.edits import KINDS, edits_of
from traindx_tools.experiments.screening.arms import arms_of

SCRIPT = '''"""Ä program."""
import numpy as np
import torch

def normalise(x, mean, std):
    return (x - mean) / std

def evaluate(model, rows, seen):
    scores = model(rows)
    scores[seen] = -np.inf
    order = scores.argsort(-1).flip(0)
    if not model.training and len(order) > 3:
        best = min(scores)
    print(f"{best} of {len(order)}")
    return best == order[1:].sum()

def main():
    data = np.load("data.npy")
    data = np.flip(data, 1)
    train, held = data[:100], data[100:]
    mask = held > 0
    good, bad = held[mask], held[~mask]
    likes = (good + bad) > 1
    low = -(good + bad) * 2
    head = (good + bad)[1:]
    count = 0
    for step in range(10):
        torch.optimizer.step()
        torch.scheduler.step()
        count += 1
        evaluate(good, bad, seen=True)

if __name__ == "__main__":
    main()
'''


def _told(do: str) -> set[tuple[str, str]]:
    return {(e.before, e.after) for e in edits_of(SCRIPT, ast.parse(SCRIPT)) if e.do == do}


@pytest.mark.parametrize(("do", "before", "after"), [
    ("left-out", "scores[seen] = -np.inf", "pass"),
    ("left-out", "count += 1", "pass"),
    ("unwrapped", "data = np.flip(data, 1)", "data = data"),
    ("unwrapped", "order = scores.argsort(-1).flip(0)", "order = scores.argsort(-1)"),
    ("turned", "best = min(scores)", "best = max(scores)"),
    ("turned", "return best == order[1:].sum()", "return best != order[1:].sum()"),
    ("turned", "evaluate(good, bad, seen=True)", "evaluate(good, bad, seen=False)"),
    ("swapped", "evaluate(good, bad, seen=True)", "evaluate(bad, good, seen=True)"),
    ("swapped", "good, bad = held[mask], held[~mask]", "bad, good = held[mask], held[~mask]"),
    ("exchanged", "torch.optimizer.step() torch.scheduler.step()", "torch.scheduler.step() torch.optimizer.step()"),
    ("never", "not model.training and len(order) > 3", "False"),
    ("whole", "return best == order[1:].sum()", "return best == order.sum()"),
    ("plain", "scores[seen] = -np.inf", "scores[seen] = np.inf"),
    ("turned", "likes = (good + bad) > 1", "likes = (good + bad) < 1"),
    ("plain", "low = -(good + bad) * 2", "low = (good + bad) * 2"),
    ("whole", "head = (good + bad)[1:]", "head = (good + bad)"),
])
def test_an_edit_of_each_kind(do: str, before: str, after: str) -> None:
    assert (before, after) in _told(do)


def test_what_is_not_edited() -> None:
    edits = edits_of(SCRIPT, ast.parse(SCRIPT))
    lines = SCRIPT.splitlines()
    assert not [e for e in edits if "print" in lines[e.line - 1] or "__main__" in lines[e.line - 1]]
    assert not [e for e in edits if e.do == "whole" and "data[" in e.before]  # it is cut in two
    assert not [e for e in edits if e.do == "plain" and "mask" in e.before]
    assert not [e for e in edits if e.do == "unwrapped" and e.after.endswith("in 10:")]


@pytest.mark.slow
def test_each_edit_is_another_program_that_parses() -> None:
    files = [Path(__file__), *Path(sys.modules[edits_of.__module__].__file__ or "").parent.glob("*.py")]
    for path in files:
        text = path.read_text()
        parts = _parts(text)
        for edit in edits_of(text, ast.parse(text)):
            assert edit.do in KINDS
            begins, ends = next(((a, b) for a, b in parts if a <= edit.start and edit.end <= b), (0, len(text)))
            changed = text[begins:edit.start] + edit.text + text[edit.end:ends]
            assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(text[begins:ends])), (path.name, edit)


def _parts(text: str) -> list[tuple[int, int]]:
    """Where each statement of a file begins and ends: parsing one of them again takes a tenth of parsing the file."""
    rows = [0]
    for row in text.splitlines(keepends=True):
        rows.append(rows[-1] + len(row))
    return [(rows[min(n.lineno, *(d.lineno for d in getattr(n, "decorator_list", ())), n.lineno) - 1],
             rows[n.end_lineno or n.lineno]) for n in ast.parse(text).body]


def test_an_edit_is_made_where_it_is_told(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    made = prepare(parse_change("edit:at=train.py:19,do=unwrapped"), "python train.py", tmp_path)
    text = (made.files["train.py"] or b"").decode()
    assert "data = data\n" in text
    assert text.replace("data = data\n", "data = np.flip(data, 1)\n") == SCRIPT
    for at, do, told in [("train.py:19", "whole", "do=unwrapped"), ("train.py:2", "whole", "no edit begins there"),
                         ("other.py:1", "whole", "of one of train.py"), ("train.py", "whole", "FILE:LINE")]:
        with pytest.raises(BadUsage, match=told):
            prepare(Change("edit", {"at": at, "do": do}), "python train.py", tmp_path)
    with pytest.raises(BadUsage, match="expected one of left-out"):
        prepare(Change("edit", {"at": "train.py:19", "do": "burnt"}), "python train.py", tmp_path)


def test_each_arm_of_the_code_can_be_made(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    arms = arms_of("python train.py", tmp_path, ("code",))
    assert arms[0].said == "train.py:19: `data = np.flip(data, 1)` -> `data = data`"
    assert len({str(a.change) for a in arms}) == len(arms)
    assert len({a.said for a in arms}) == len(arms)
    for arm in arms:
        assert prepare(parse_change(str(arm.change)), "python train.py", tmp_path).files["train.py"] != SCRIPT.encode()


ORDERED = '''
def risk(score, days, names, rows):
    order = torch.argsort(days)
    score, days = score[order], days[order]
    names = sorted(names, key=len)
    names.sort()
    last = (days + 1).argsort(dim=0)
    rank = days.argsort()
    done = sorted(rows, reverse=False)
    low = np.argsort(-days)
    some = sorted(r for r in rows)
    return score[rank], names[0], rows[last]
'''


def test_sorts_go_the_other_way_round_and_orders_are_undone() -> None:
    made = {}
    for edit in edits_of(ORDERED, ast.parse(ORDERED)):
        text = ORDERED[:edit.start] + edit.text + ORDERED[edit.end:]
        ast.parse(text)
        made.setdefault(edit.do, set()).add(text.splitlines()[edit.line - 1].strip())
    assert made["turned"] >= {
        "order = torch.argsort(-days)", "names = sorted(names, key=len, reverse=True)", "names.sort(reverse=True)",
        "last = (-(days + 1)).argsort(dim=0)", "rank = (-days).argsort()", "done = sorted(rows, reverse=True)"}
    assert made["undone"] == {
        "score, days = score[order.argsort()], days[order]", "score, days = score[order], days[order.argsort()]",
        "return score[rank.argsort()], names[0], rows[last]", "return score[rank], names[0], rows[last.argsort()]"}
    assert not any("r for r in rows," in text for text in made["turned"])
