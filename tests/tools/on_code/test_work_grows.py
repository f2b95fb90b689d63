"""A file of twice as many statements of one kind takes about twice the work, counted in calls and not in seconds."""

from __future__ import annotations

import ast
import cProfile
import sys

import pytest

from traindx_tools.code_audit.entry import AuditResult, audit_texts
from traindx_tools.edits.patches import MOST_CHECKED, applied, still_parses
from traindx_tools.finding import Patch
from traindx_tools.on_code.source import SourceFile, parse_source
from traindx_tools.source_files.texts import Text

FEW = 100
MOST_GROWTH = 2.4
"""How much more work twice the statements may be; sorting and look-ups take a little more than twice."""

TORCH = """import torch
import torch.nn as nn
import torch.nn.functional as F
net = nn.Linear(8, 2)
opt = torch.optim.Adam(net.parameters(), 1e-3)
"""
LOOP = TORCH + "def train(loader):\n    for x, y in loader:\n"
JAX = "import jax\nimport jax.numpy as jnp\nimport optax\n"
STEP = "loss = F.cross_entropy(net(x), y)\nloss.backward()\n"

KINDS: dict[str, tuple[str, int, str]] = {
    "probabilities into a loss": (LOOP, 8, "probs = net(x).softmax(-1)\nloss = F.cross_entropy(probs, y)"),
    "functions with such a loss": (TORCH, 0, "def f{i}(x, y):\n    p = F.softmax(net(x), -1)\n"
                                             "    return F.cross_entropy(p, y)"),
    "steps": (LOOP, 8, STEP + "opt.step()"),
    "steps behind zero_grad": (LOOP, 8, "opt.zero_grad()\n" + STEP + "opt.step()"),
    "steps behind clipping": (LOOP, 8, STEP + "nn.utils.clip_grad_norm_(net.parameters(), 1.0)\nopt.step()"),
    "steps once a window": (TORCH + "def train(loader):\n    for i, (x, y) in enumerate(loader):\n", 8,
                            STEP + "if (i + 1) % 4 == 0:\n    opt.step()\n    opt.zero_grad()"),
    "steps of a scaler": (LOOP.replace("def", "scaler = torch.amp.GradScaler()\ndef"), 8,
                          "loss = F.cross_entropy(net(x), y)\nscaler.scale(loss).backward()\n"
                          "scaler.step(opt)\nscaler.update()\nopt.zero_grad()"),
    "steps of a scheduler": (LOOP.replace("def", "s = torch.optim.lr_scheduler.StepLR(opt, 3)\ndef"), 8,
                             STEP + "opt.step()\ns.step()"),
    "schedulers": (TORCH, 0, "s{i} = torch.optim.lr_scheduler.StepLR(opt, 3)"),
    "optimizers": (TORCH, 0, "opt{i} = torch.optim.SGD(net.parameters(), 0.1)"),
    "models with their optimizers": (TORCH, 0, "m{i} = nn.Linear(8, 2)\no{i} = torch.optim.SGD(m{i}.parameters(), 1)"),
    "training loops": (TORCH + "def train(loader):\n", 4,
                       "for x, y in loader:\n    opt.zero_grad()\n    loss = F.cross_entropy(net(x), y)\n"
                       "    loss.backward()\n    opt.step()"),
    "summed losses": (LOOP, 8, "loss = loss + F.cross_entropy(net(x), y)"),
    "evaluations": (LOOP, 8, "net.eval()\nz = net(x)\nnet.train()"),
    "logarithms": (LOOP, 8, "p = torch.softmax(x, -1)\nz = torch.log(p)"),
    "attention": (LOOP, 8, "a = x.masked_fill(y == 0, -1e9)\na = a.softmax(-1)"),
    "divergences": (LOOP, 8, "kl = -0.5 * torch.sum(1 + x - y.pow(2) - x.exp())\nl = F.mse_loss(net(x), x) + kl"),
    "targets": (LOOP, 8, "q = net(x).gather(1, y)\nt = y + 0.99 * net(x).max(1)[0]\nloss = F.mse_loss(q, t)"),
    "scalers before splits": ("import torch\nfrom sklearn.preprocessing import StandardScaler\n"
                              "from sklearn.model_selection import train_test_split\n", 0,
                              "X{i} = StandardScaler().fit_transform(X)\na, b = train_test_split(X{i})"),
    "splits of keys": (JAX + "def f(key):\n", 4, "key, sub = jax.random.split(key)\nx = jax.random.normal(sub, (3,))"),
    "updates": (JAX + "tx = optax.adam(1e-3)\ndef f(params, grads, state):\n", 4,
                "updates, state = tx.update(grads, state, params)\nparams = optax.apply_updates(params, updates)"),
    "gradients": (JAX + "def loss(p, x):\n    return jnp.mean((x @ p) ** 2)\ndef f(p, x):\n", 4,
                  "g = jax.grad(loss)(p, x)\np = p - 0.1 * g"),
    "arms": (TORCH + "def f(kind, x):\n    if kind == 'a':\n        z = x\n", 4,
             "elif kind == 'k{i}':\n    z = net(x) * 2"),
    "branches": (TORCH + "def f(kind, x):\n", 4, "if kind == {i}:\n    z{i} = net(x)\nelse:\n    z{i} = None"),
    "contexts": (LOOP, 8, "with torch.no_grad():\n    z = net(x)"),
    "attempts": (LOOP, 8, "try:\n    z = net(x)\nexcept ValueError:\n    z = None"),
    "classes": (TORCH, 0, "class N{i}(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
                          "        self.a = nn.Linear(3, 4)\n    def forward(self, x):\n        return self.a(x)"),
    "calls of functions": (TORCH, 0, "def g{i}(x):\n    return net(x)\nz = g{i}(torch.zeros(8))"),
}  # fmt: skip


def written(kind: str, count: int) -> str:
    head, indent, body = KINDS[kind]
    pad = " " * indent
    lines = (pad + line for i in range(count) for line in body.replace("{i}", str(i)).split("\n"))
    return head + "\n".join(lines) + "\n"


def audited(text: str) -> AuditResult:
    return audit_texts([Text("train.py", text, "")])


def work_of(text: str) -> int:
    """The calls that an audit makes, those of built-in functions included."""
    counting = cProfile.Profile()
    before = sys.getprofile()
    sys.setprofile(None)  # one profiler at a time, and coverage may be one
    try:
        counting.runcall(audited, text)
    finally:
        sys.setprofile(before)
    return sum(entry.callcount for entry in counting.getstats())


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_twice_the_statements_are_about_twice_the_work(kind: str) -> None:
    work_of(written(kind, 5))  # what is imported and compiled once
    few, many = (work_of(written(kind, n)) for n in (FEW, 2 * FEW))
    assert many <= MOST_GROWTH * few


def chain(arms: int, body: str, ending: str = "") -> str:
    rows = "".join(f"    elif kind == 'k{i}':\n        {body}\n" for i in range(arms))
    return f"{JAX}def f(kind, key):\n    if kind == 'a':\n        x = 0\n{rows}{ending}"


@pytest.mark.parametrize("arms", [20, 400])
def test_a_long_dispatch_is_followed_whole(arms: int) -> None:
    rows = "".join(f"    elif kind == 'k{i}':\n        loss = F.cross_entropy(net(x).softmax(-1), y)\n"
                   for i in range(arms))  # fmt: skip
    result = audited(f"{TORCH}def f(kind, x, y):\n    if kind == 'a':\n        pass\n{rows}    return loss\n")
    assert not result.notes
    assert sum(f.rule == "C102" for f in result.findings) == arms


@pytest.mark.parametrize("arms", [20, 400])
def test_only_one_arm_of_a_dispatch_runs(arms: int) -> None:
    draw = "x = jax.random.normal(key, (3,))"
    assert not audited(chain(arms, draw, "    return x\n")).findings
    assert not audited(chain(arms, "return jax.random.normal(key, (3,))", "    return jax.random.bits(key)\n")).findings
    again = audited(chain(arms, draw, "    return x + jax.random.normal(key, (3,))\n")).findings
    assert [f.rule for f in again] == ["C501"]


@pytest.mark.parametrize("arms", [20, 400])
def test_the_arm_that_certainly_runs_is_the_last(arms: int) -> None:
    rows = "".join(f"elif KIND == 'k{i}':\n    z = net(x).softmax(-1)\n" for i in range(arms))
    head = f"{TORCH}KIND = 'none'\nx, y = torch.zeros(4, 8), torch.zeros(4).long()\n"
    text = f"{head}if KIND == 'a':\n    pass\n{rows}else:\n    z = net(x)\nF.cross_entropy(z, y)\n"
    assert not audited(text).findings
    assert [f.rule for f in audited(text.replace("'none'", f"'k{arms // 2}'")).findings] == ["C102"]


SOURCE = """import torch


def train(loader):
    for x in loader:
        if x:
            one(x)
            two(x)
        elif y:
            three(x)
        four(x)
    return 1


@torch.no_grad()
def evaluate():
    with torch.no_grad(): five()
    text = '''
    six
    '''
"""


def parsed(text: str) -> SourceFile:
    file = parse_source("train.py", text)
    assert isinstance(file, SourceFile)
    return file


def patch(file: SourceFile, first: int, last: int, *code: str) -> Patch:
    return Patch("train.py", first, last, "\n".join(file.lines[first - 1 : last]), "\n".join(code), "")


@pytest.mark.parametrize("code", ["x = 1", "    x = 1", "        x = 1", "            x = 1", "                x = 1",
                                  "        else:", "            pass\n        else:\n            pass", "        )",
                                  "        elif z:\n            pass", "@d", "        '''", ""])  # fmt: skip
def test_a_patch_is_judged_as_the_whole_file_would_be(code: str) -> None:
    lines = len(parsed(SOURCE).lines)
    for first in range(1, lines + 1):
        for last in (first - 1, first, first + 1):
            file = parsed(SOURCE)
            made = (patch(file, first, min(last, lines), *code.split("\n")),)
            whole = applied("\n".join(file.lines), made)
            assert still_parses(file, made) is _is_python(whole), whole


def _is_python(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


@pytest.mark.slow
def test_patches_of_a_long_file_are_all_checked() -> None:
    text = written("functions with such a loss", 2000)
    findings = [f for f in audited(text).findings if f.rule == "C102"]
    assert len(findings) == 2000
    assert len(text) * len(findings) > 10 * MOST_CHECKED
    assert all(f.patch for f in findings)
