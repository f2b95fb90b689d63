"""Code that is all the code of a run excludes what is not written in it; other code excludes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from traindx_tools.closed_code import closed_text
from traindx_tools.examine import examine
from traindx_tools.on_logs.run import Run
from traindx_tools.preconditions import impossible, shown_by

LOOP = """import torch
net = torch.nn.Linear(2, 2)
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
for step in range(60):
    loss = torch.nn.functional.cross_entropy(net(torch.randn(8, 2)), torch.zeros(8).long())
    opt.zero_grad(); loss.backward(); opt.step()
    print(f"step {step} loss {loss.item():.4f}")
torch.save(net.state_dict(), "net.pt")
"""
FLAT = "".join(f"step {i} loss {0.693 + 0.0001 * (i % 3):.4f} acc 0.501\n" for i in range(60))
ABSENT = ("loss.sigmoid-before-bce", "loss.softmax-before-ce", "ckpt.missing-keys-silent",
          "accum.zero-grad-before-step", "amp.scaler-incomplete", "act.dead-relu", "multi.starved-task")


def grounds(folder: Path, *, log: str = "", **files: str) -> frozenset[str]:
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    return shown_by(Run(), sorted(folder.glob("*.py")), log)


@pytest.mark.parametrize("mode", ABSENT)
def test_what_the_whole_code_does_not_hold_is_impossible(tmp_path: Path, mode: str) -> None:
    assert impossible(mode, grounds(tmp_path, train=LOOP))


@pytest.mark.parametrize(("mode", "more"), [
    ("loss.sigmoid-before-bce", "lossf = torch.nn.BCEWithLogitsLoss()\n"),
    ("loss.softmax-before-ce", "p = net(x).softmax(1)\n"),
    ("ckpt.missing-keys-silent", "net.load_state_dict(torch.load('net.pt'), strict=False)\n"),
    ("accum.zero-grad-before-step", "loss.backward()\nopt.zero_grad()\nopt.step()\n"),
    ("accum.zero-grad-before-step", "def clear():\n    opt.zero_grad()\ndef fit():\n    loss.backward()\n"),
    ("amp.scaler-incomplete", "scaler = torch.amp.GradScaler()\n"),
    ("act.dead-relu", "act = torch.nn.ReLU()\n"),
    ("multi.starved-task", "total = box_loss + 2 * class_loss\n"),
    ("multi.starved-task", "other.backward()\n"),
])
def test_what_it_holds_is_possible(tmp_path: Path, mode: str, more: str) -> None:
    assert not impossible(mode, grounds(tmp_path, train=LOOP + more))


@pytest.mark.parametrize("more", ["import lightning\n", "from mylab.training import run\n", "exec(open('x').read())\n",
                                  "import importlib\nm = importlib.import_module(name)\n", "def broken(:\n"])
def test_code_with_more_to_it_excludes_nothing(tmp_path: Path, more: str) -> None:
    shown = grounds(tmp_path, train=more + LOOP)
    assert closed_text([tmp_path / "train.py"]) is None
    assert not any(impossible(mode, shown) for mode in ABSENT)


ONE_LINE = LOOP.replace("opt.zero_grad(); loss.backward(); opt.step()", "{}")


@pytest.mark.parametrize("written", [
    "opt.zero_grad(); loss.backward(); opt.step()",
    "opt.zero_grad()\n    loss.backward()\n    opt.step()",
    "opt.zero_grad(set_to_none=True)  # every step\n    loss.backward()\n    opt.step()",
    "loss.backward(); opt.step(); opt.zero_grad()",
    "if True: opt.zero_grad(); loss.backward(); opt.step()",
])
def test_what_is_called_is_no_suspect_however_it_is_laid_out(tmp_path: Path, written: str) -> None:
    assert impossible("accum.zero-grad-missing", grounds(tmp_path, train=ONE_LINE.replace("{}", written)))


@pytest.mark.parametrize("written", [
    "loss.backward(); opt.step()", "loss.backward()  # opt.zero_grad()\n    opt.step()",
    '"""opt.zero_grad()"""\n    loss.backward(); opt.step()',
])
def test_what_is_only_spoken_of_is_not_called(tmp_path: Path, written: str) -> None:
    assert not impossible("accum.zero-grad-missing", grounds(tmp_path, train=ONE_LINE.replace("{}", written)))


OPERATIONS = {
    "num.exp-overflow": ("torch.exp(h)", "h.exp()", "torch.distributions.Normal(0, h)", "2 ** h", "torch.sinh(h)"),
    "model.halts-at-same-step": ("h.var()", "torch.std(h, 0)", "halted.float()"),
    "loss.log-of-zero": ("torch.log(h)", "h.log2()", "F.binary_cross_entropy(h, y)", "F.kl_div(h, y)"),
    "grad.sqrt-at-zero": ("h.sqrt()", "torch.cdist(h, h)", "h ** 0.5", "h.norm()"),
    "num.where-unsafe-branch": ("torch.where(h > 0, h, y)", "h.masked_fill(m, 0)"),
    "num.singular-matrix": ("torch.linalg.inv(h)", "torch.cholesky(h)", "h.det()"),
    "loss.ctc-too-short": ("F.ctc_loss(h, y, a, b)",),
    "num.uninitialised-memory": ("torch.empty(3)", "torch.nn.Parameter(torch.Tensor(3))"),
}
BARE = """import torch
net = torch.nn.Linear(2, 2)
opt = torch.optim.SGD(net.parameters(), lr=1e-2)
for step in range(60):
    h = net(torch.randn(8, 2))
    loss = (h - 1).mul(h).mean()
    opt.zero_grad(); loss.backward(); opt.step()
    print(f"step {step} loss {loss.item():.4f}")
"""


@pytest.mark.parametrize("mode", OPERATIONS)
def test_an_operation_that_the_program_does_not_hold_is_no_suspect(tmp_path: Path, mode: str) -> None:
    assert impossible(mode, grounds(tmp_path, train=BARE))
    assert impossible(mode, grounds(tmp_path, train=BARE + "# " + OPERATIONS[mode][0]))
    assert not impossible(mode, grounds(tmp_path, train=BARE + "from mylab import layers\n"))


@pytest.mark.parametrize(("mode", "held"), [(m, held) for m, every in OPERATIONS.items() for held in every])
def test_one_that_it_holds_may_be(tmp_path: Path, mode: str, held: str) -> None:
    assert not impossible(mode, grounds(tmp_path, train=BARE + held + "\n"))


def test_a_program_of_nothing_but_words_is_read(tmp_path: Path) -> None:
    assert impossible("num.exp-overflow", grounds(tmp_path, train='"""torch.exp"""\nx = 1\n'))


def test_own_modules_belong_to_it(tmp_path: Path) -> None:
    shown = grounds(tmp_path, train="from model import Net\n" + LOOP, model="import torch\nclass Net: ...\n")
    assert impossible("loss.sigmoid-before-bce", shown)
    (tmp_path / "model.py").unlink()
    assert closed_text([tmp_path / "train.py"]) is None


def test_a_log_or_a_person_may_know_better(tmp_path: Path) -> None:
    assert not impossible("ckpt.missing-keys-silent", grounds(tmp_path, train=LOOP, log="resumed from step 3"))


def test_no_code_excludes_nothing() -> None:
    assert not any(impossible(mode, shown_by(Run())) for mode in ABSENT)


def test_suspects_fit_the_code(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(LOOP)
    (tmp_path / "log.txt").write_text(FLAT)
    with_code = {h.mode.id for h in examine([tmp_path], root=tmp_path).verdict.hypotheses}
    alone = {h.mode.id for h in examine([tmp_path / "log.txt"], root=tmp_path / "nowhere").verdict.hypotheses}
    assert with_code
    assert not with_code & set(ABSENT)
    assert alone
