"""Programs with one fault each, diagnosed by one run: the cause is named first; healthy twins give no such finding."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from traindx.diagnose import diagnose
from traindx.rerun import with_rerun

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@dataclass(frozen=True)
class Faulty:
    """A program, the part of it that is wrong and what stands there in its twin, and what is to be named."""

    needs: tuple[str, ...]
    text: str
    wrong: str
    right: str
    mode: str
    rule: str
    symptom: str


LABELS = '''
import jax, jax.numpy as jnp, numpy as np, optax

WIDTH = 24
random = np.random.default_rng(0)


def weight():
    return jnp.asarray(random.normal(size=(WIDTH, WIDTH)) / WIDTH**0.5, jnp.float32)


params = {"layers": [{"mixer": weight(), "dense": weight()} for _ in range(3)],
          "head": jnp.asarray(random.normal(size=(WIDTH, 1)) / WIDTH**0.5, jnp.float32)}
labels = jax.tree_util.tree_map_with_path(
    lambda path, _: "rest" if "mix" in jax.tree_util.keystr(path) else "train", params)
optimizer = optax.multi_transform({"train": optax.adam(3e-3), "rest": optax.set_to_zero()}, labels)
state = optimizer.init(params)


def answers(p, x):
    for layer in p["layers"]:
        x = x + jnp.tanh(jnp.tanh(x @ layer["dense"]) @ layer["mixer"])
    return (x @ p["head"])[:, 0]


@jax.jit
def step(params, state, x, y):
    loss, gradient = jax.value_and_grad(lambda p: ((answers(p, x) - y) ** 2).mean())(params)
    updates, state = optimizer.update(gradient, state, params)
    return optax.apply_updates(params, updates), state, loss


for number in range(120):
    x = random.normal(size=(64, WIDTH)).astype(np.float32)
    params, state, loss = step(params, state, x, np.sin(3 * x[:, 0]) * x[:, 1])
    if number % 10 == 0:
        print(f"step {number} loss {float(loss):.4f}")
'''

AVERAGE = '''
import copy, torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(12, 48), nn.Tanh(), nn.Linear(48, 4))
average = copy.deepcopy(model).to(torch.bfloat16).requires_grad_(False)
optimizer = torch.optim.Adam(model.parameters(), 3e-3)
rule = torch.randn(12, 4)
held = torch.randn(500, 12)
for step in range(400):
    x = torch.randn(64, 12)
    loss = F.cross_entropy(model(x), (x @ rule).argmax(-1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for kept, now in zip(average.parameters(), model.parameters()):
            kept.lerp_(now.to(kept.dtype), 0.001)
    if step % 40 == 39:
        with torch.no_grad():
            found = average(held.to(average[0].weight.dtype)).argmax(-1)
        right = (found == (held @ rule).argmax(-1)).float().mean()
        print(f"step {step + 1} train_loss {loss.item():.4f} val_acc {right:.3f}")
'''

PADDING = '''
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
WORDS, WIDTH, LONGEST = 40, 24, 16


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.word, self.place = nn.Embedding(WORDS, WIDTH), nn.Embedding(LONGEST, WIDTH)
        self.mix, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WORDS)

    def forward(self, ids, keep):
        h = self.word(ids) + self.place((keep.cumsum(1) - 1).clamp(min=0))
        q, k, v = self.mix(h).chunk(3, -1)
        seen = torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool).tril()[None] & keep[:, None].bool()
        return self.out(h + (q @ k.transpose(1, 2) / 5).masked_fill(~seen, -1e4).softmax(-1) @ v)


def texts(count):
    made = []
    for _ in range(count):
        length, first = int(torch.randint(5, LONGEST, ())), int(torch.randint(1, WORDS, ()))
        made.append(torch.tensor([(first + 3 * i - 1) % (WORDS - 1) + 1 for i in range(length)]))
    return made


def padded(rows, before):
    width = max(map(len, rows))
    ids = torch.zeros(len(rows), width, dtype=torch.long)
    for row, text in zip(ids, rows):
        row[width - len(text) if before else 0:][:len(text)] = text
    return ids


model = Decoder()
optimizer = torch.optim.Adam(model.parameters(), 3e-3)
held = texts(64)
for step in range(150):
    ids = padded(texts(32), False)
    scores = model(ids[:, :-1], torch.ones_like(ids[:, :-1]))
    loss = F.cross_entropy(scores.flatten(0, 1), ids[:, 1:].flatten(), ignore_index=0)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 15 == 14:
        model.eval()
        with torch.no_grad():
            ids = padded([t[:-1] for t in held], True)
            keep = torch.ones_like(ids)
            right = (model(ids, keep)[:, -1].argmax(-1) == torch.stack([t[-1] for t in held])).float().mean()
        model.train()
        print(f"step {step + 1} loss {loss.item():.4f} next_acc {right:.3f}")
'''

FIELD = '''
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, default_collate

torch.manual_seed(0)
x = torch.randn(1200, 8)
rows = [{"x": x[i], "y": int(x[i, 0] > 1.2), "weight": 8.0 if x[i, 0] > 1.2 else 1.0} for i in range(len(x))]


def collate(given):
    return default_collate([{k: r[k] for k in ("x", "y")} for r in given])


def loss_of(model, batch):
    each = F.cross_entropy(model(batch["x"]), batch["y"], reduction="none")
    weight = batch.get("weight")
    return (each if weight is None else each * weight).mean()


model = nn.Sequential(nn.Linear(8, 24), nn.ReLU(), nn.Linear(24, 2))
optimizer = torch.optim.Adam(model.parameters(), 1e-3)
for epoch in range(6):
    for batch in DataLoader(rows, 32, shuffle=True, collate_fn=collate):
        loss = loss_of(model, batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch} loss {loss.item():.4f}")
'''

CLOCKS = '''
import numpy as np, pandas as pd, torch
from torch import nn

torch.manual_seed(0)
random = np.random.default_rng(0)
times = pd.date_range("2024-01-01", periods=3000, freq="h", tz="UTC")
warm = 10 + 8 * np.sin(2 * np.pi * np.arange(3000) / 24) + random.normal(size=3000)
weather = pd.DataFrame({"time": times.tz_convert("Asia/Tokyo").tz_localize(None), "warm": warm})
meter = pd.DataFrame({"time": times.tz_localize(None), "load": 50 - 2 * warm + random.normal(size=3000)})
table = meter.merge(weather, on="time", how="left")
table = ((table[["warm", "load"]] - table[["warm", "load"]].mean()) / table[["warm", "load"]].std()).fillna(0.0)
x, y = (torch.tensor(table[c].to_numpy(), dtype=torch.float32) for c in ("warm", "load"))
model = nn.Sequential(nn.Linear(1, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), 3e-3)
for step in range(200):
    rows = torch.randint(0, len(x), (64,))
    loss = (model(x[rows, None])[:, 0] - y[rows]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        print(f"step {step} loss {loss.item():.4f}")
'''

CONSTANT = '''
import jax, jax.numpy as jnp, numpy as np, optax

PAD, WORDS, WIDTH = 0, 40, 16
random = np.random.default_rng(0)


def batch():
    ids = np.full((32, 14), 39, np.int32)
    for row in ids:
        length, first = int(random.integers(4, 13)), int(random.integers(1, 39))
        row[:length] = [(first + 3 * i) % 39 for i in range(length)]
    return ids


params = {"word": jnp.asarray(random.normal(size=(WORDS, WIDTH)) * 0.1, jnp.float32),
          "out": jnp.asarray(random.normal(size=(WIDTH, WORDS)) * 0.1, jnp.float32)}
optimizer = optax.adam(3e-3)
state = optimizer.init(params)


@jax.jit
def step(params, state, ids):
    def loss(p):
        each = optax.softmax_cross_entropy_with_integer_labels(p["word"][ids[:, :-1]] @ p["out"], ids[:, 1:])
        counts = ids[:, 1:] != PAD
        return (each * counts).sum() / jnp.maximum(counts.sum(), 1)

    value, gradient = jax.value_and_grad(loss)(params)
    updates, state = optimizer.update(gradient, state, params)
    return optax.apply_updates(params, updates), state, value


for number in range(120):
    params, state, loss = step(params, state, batch())
    if number % 10 == 0:
        print(f"step {number} loss {float(loss):.4f}")
'''

ALL = [
    Faulty(("jax", "optax"), LABELS, '"mix" in', '"none" in', "opt.frozen-parameters", "J708",
           "the loss ends too high"),
    Faulty(("torch",), AVERAGE, "torch.bfloat16", "torch.float32", "num.average-rounds-away", "T349",
           "validation accuracy stays at chance while the loss falls"),
    Faulty(("torch",), PADDING, "keep = torch.ones_like(ids)", "keep = (ids != 0).long()", "eval.padding-before",
           "T348", "the answers are wrong although the loss is low"),
    Faulty(("torch",), FIELD, '("x", "y")', '("x", "y", "weight")', "data.field-dropped", "T726",
           "the rare class is hardly ever predicted"),
    Faulty(("torch", "pandas"), CLOCKS, '"Asia/Tokyo"', '"UTC"', "data.clocks-differ", "V104", "the loss stays high"),
    Faulty(("jax", "optax"), CONSTANT, "PAD, WORDS, WIDTH = 0,", "PAD, WORDS, WIDTH = 39,", "label.padding-ids-differ",
           "J806", "padding is predicted everywhere"),
]  # fmt: skip


@pytest.mark.parametrize("faulty", ALL, ids=lambda f: f.rule)
def test_the_cause_is_named_first_and_the_twin_is_left_alone(faulty: Faulty, tmp_path: Path) -> None:
    for name in faulty.needs:
        pytest.importorskip(name)
    assert faulty.wrong in faulty.text
    for kind, text in (("faulty", faulty.text), ("healthy", faulty.text.replace(faulty.wrong, faulty.right))):
        work = tmp_path / kind
        work.mkdir()
        (work / "train.py").write_text(text, encoding="utf-8")
        old = diagnose([work], root=work, symptom=faulty.symptom)
        new = with_rerun(old, f"{shlex.quote(sys.executable)} train.py", work, tmp_path / f"{kind}-runs", budget=0)
        rules = {f.rule for f in new.seen.findings}
        if kind == "faulty":
            assert new.seen.verdict.hypotheses[0].mode.id == faulty.mode
            assert faulty.rule in rules
        else:
            assert faulty.rule not in rules
