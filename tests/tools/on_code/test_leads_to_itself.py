"""Values that are made of themselves (`mean = mean.view(1, -1)`): every search along them comes to an end."""

from __future__ import annotations

import ast
import random
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from traindx_tools.code_audit import audit_sources
from traindx_tools.on_code.source import SourceFile, parse_source

FIXTURES = sorted((Path(__file__).parent / "fixtures").rglob("*.py"))
SECONDS = 60
"""Far beyond what any of these takes: what runs longer never ends."""
FORMS = (
    "{v}.view(-1)", "float({v})", "{v}[0]", "1 - {v}", "{v} - {v}.mean()", "{v} / {v}.std()", "({v}, {v})", "f({v})",
    "{v}.float()", "jnp.asarray({v})", "{v} if {v} else 0", "-{v}", "{v}.item()", "{v}['a']", "{v} * 2", "lambda: {v}",
    "{v}()", "{v} + {v}", "torch.log({v})", "{v}.reshape(1, -1)", "{v}.values", "dict(a={v})", "torch.compile({v})",
    "optax.chain({v}, {v})", "[{v}, {v}]", "{v}.x",
)  # fmt: skip


@pytest.fixture(autouse=True)
def ends() -> Iterator[None]:
    """A search that never ends fails the test instead of stopping all of them."""
    def too_long(number: int, frame: object) -> None:
        pytest.fail(f"no end after {SECONDS} s")

    before = signal.signal(signal.SIGALRM, too_long)
    signal.alarm(SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def parsed(text: str) -> SourceFile:
    source = parse_source("train.py", text)
    assert isinstance(source, SourceFile)
    return source


HEAD = ("import torch\nimport torch.nn.functional as F\nimport numpy as np\nimport jax\nimport optax\n"
        "from torch import nn\nfrom sklearn.model_selection import train_test_split\n")


@pytest.mark.parametrize("body", [
    "def norm(x, mean, std):\n    mean = mean.view(1, -1)\n    std = std.view(1, -1)\n"
    "    x = (x - mean) / std\n    return x[:10], x[10:]\nw = w - torch.mean(w, 0)\nw.sum().backward()",
    "def loss(logits, y):\n    y = y.float()\n    return F.cross_entropy(logits, y.sum(dim=1))",
    "def accuracy(pred, y):\n    pred = pred[0]\n    return (pred == y).float().mean()\nhits = accuracy(a, b)",
    "def weight(y, neg):\n    neg = neg - neg\n    pos = float(pos)\n"
    "    return nn.BCEWithLogitsLoss(pos_weight=neg / pos)",
    "def d_loss(real, fake):\n    loss_d = loss_d + loss_d\n    loss_d.backward()\n    discriminator.step()",
    "class Set:\n    def __getitem__(self, i):\n        aug = aug if aug else aug\n        img = aug(self.img[i])\n"
    "        mask = aug(self.mask[i])\n        return img, mask",
    "def make(tx, params):\n    tx = optax.chain(optax.masked(tx, params), tx)\n    return tx.init(params)",
    "def steps(loss):\n    loss = loss - 1\n    return loss\ng = jax.value_and_grad(steps, has_aux=True)(w)",
    "def data(noise):\n    noise = noise + noise\n    return torch.from_numpy(noise)\nnet = nn.Linear(2, 2)\n"
    "net(data(3)).backward()",
    "def mlp(dims):\n    dims = [3] + dims\n"
    "    return nn.Sequential(*[nn.Linear(a, b) for a, b in zip(dims, dims[1:])])",
    "f = g\ng = f\nf(3)\nloss = g(3)\nloss.backward()",
    "rates = [rates, rates]\nsched = torch.optim.lr_scheduler.LambdaLR(opt, rates)",
    "def body(carry, x):\n    carry = (carry, carry)\n    k = jax.random.normal(carry[1])\n    return carry, k\n"
    "jax.lax.scan(body, c, xs)",
    "import lightning as L\nclass M(L.LightningModule):\n    def __init__(self, net):\n"
    "        self.net = torch.compile(self.net)\n"
    "    def training_step(self, batch, _):\n        loss = 1 - loss\n        return loss\n"
    "    def configure_optimizers(self):\n        return torch.optim.AdamW(self.net.parameters(), lr=2e-4)",
    "def epoch(a, b):\n    a = b * 2\n    b = a * 2\n    for g in opt.param_groups:\n        g['lr'] = g['lr'] * a",
])  # fmt: skip
def test_a_value_that_is_made_of_itself(body: str) -> None:
    assert audit_sources([parsed(HEAD + body + "\n")]).notes == ()


class _OfThemselves(ast.NodeTransformer):
    """Makes values of themselves, or of the one before."""

    def __init__(self, draw: random.Random, share: float) -> None:
        self._draw, self._share = draw, share
        self._before = "other"

    def visit_Assign(self, node: ast.Assign) -> ast.Assign:
        target = node.targets[0]
        if isinstance(target, (ast.Name, ast.Attribute)) and self._draw.random() < self._share:
            name = ast.unparse(target)
            form = self._draw.choice(FORMS).format(v=self._draw.choice((name, name, self._before)))
            node = ast.copy_location(ast.Assign(node.targets, ast.parse(form, mode="eval").body), node)
            self._before = name
        return node


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 2, 3))])
def test_fixtures_whose_values_are_made_of_themselves(seed: int) -> None:
    draw = random.Random(seed)
    told = 0
    for path in draw.sample(FIXTURES, 60):
        tree = _OfThemselves(draw, draw.choice((0.15, 0.4, 1.0))).visit(ast.parse(path.read_text()))
        result = audit_sources([parsed(ast.unparse(ast.fix_missing_locations(tree)))])
        assert not [n for n in result.notes if n.format == "rule"], path
        told += len(result.findings)
    assert told > 0
