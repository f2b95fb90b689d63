"""What is observed is computed as if nobody looked: every value and every random number at the end, bit for bit."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from traindx_tools.live.session import close_session, open_session
from traindx_tools.live.settings import Settings

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

STEPS = 60
"""Beyond the first looks of every probe, which are the closest ones."""
PROBES = (("always",), ("always", "snapshot"), ("all",), ("digests",))


def with_probes(attachment: Any, run: Callable[[], list[str]], folder: Path, probes: tuple[str, ...]) -> list[str]:
    """What a run gives with these probes attached."""
    attachment.attach(open_session(Settings(str(folder), probes)))
    try:
        return run()
    finally:
        close_session()
        attachment.detach()


def of_process() -> list[str]:
    """The random states of Python and numpy."""
    kind, keys, *rest = np.random.get_state(legacy=True)
    return [repr(random.getstate()), f"{kind} {keys.tobytes().hex()} {rest}"]


def convolutional() -> list[str]:
    """BatchNorm, dropout, a loader with shuffling and augmentation, clipping, a schedule, an evaluation in between."""
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    torch.manual_seed(5)
    np.random.seed(5)
    random.seed(5)
    model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                          nn.Dropout(0.2), nn.Linear(128, 5))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
    x, y = torch.randn(120, 3, 8, 8), torch.randint(0, 5, (120,))
    told: list[str] = []
    for _ in range(STEPS // 10):
        for a, b in DataLoader(TensorDataset(x, y), batch_size=12, shuffle=True):
            a = a + 0.01 * float(np.random.normal()) + 0.01 * random.random()
            loss = nn.functional.cross_entropy(model(a), b)
            optimizer.zero_grad()
            loss.backward()
            told.append(float(nn.utils.clip_grad_norm_(model.parameters(), 1.0)).hex())
            optimizer.step()
            schedule.step()
            told.append(loss.item().hex())
        model.eval()
        with torch.no_grad():
            told.append(model(x).sum().item().hex())
        model.train()
    held: list[Any] = [*model.state_dict().values(), *(p.grad for p in model.parameters()), torch.get_rng_state()]
    held += [v for s in optimizer.state.values() for v in s.values() if isinstance(v, torch.Tensor)]
    return told + [t.detach().contiguous().numpy().tobytes().hex() for t in held] + of_process()


def attention() -> list[str]:
    """A transformer layer under autocast with accumulation."""
    import torch
    from torch import nn

    torch.manual_seed(6)
    layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1, batch_first=True)
    model = nn.Sequential(nn.Embedding(50, 16), layer, nn.Linear(16, 50))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    told = []
    for step in range(STEPS):
        ids = torch.randint(0, 50, (4, 10))
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(model(ids).flatten(0, 1), ids.flatten()) / 2
        loss.backward()
        told.append(loss.item().hex())
        if step % 2:
            optimizer.step()
            optimizer.zero_grad()
    held = [*model.state_dict().values(), torch.get_rng_state()]
    return told + [t.detach().contiguous().numpy().tobytes().hex() for t in held] + of_process()


def jitted() -> list[str]:
    """A jitted step with a key, a schedule and donated state, an evaluation in between."""
    import jax
    import jax.numpy as jnp
    import optax

    tx = optax.adamw(optax.cosine_decay_schedule(1e-2, STEPS))
    one, two, key = jax.random.split(jax.random.key(7), 3)
    params = {"a": jax.random.normal(one, (8, 32)) / 3, "b": jax.random.normal(two, (32, 4)) / 6}
    opt = tx.init(params)

    def forward(p: Any, x: Any) -> Any:
        return jax.nn.relu(x @ p["a"]) @ p["b"]

    def step(params: Any, opt: Any, x: Any, y: Any, key: Any) -> Any:
        def loss_fn(p: Any) -> Any:
            kept = x * jax.random.bernoulli(key, 0.9, x.shape)
            return optax.softmax_cross_entropy_with_integer_labels(forward(p, kept), y).mean()

        loss, grads = jax.value_and_grad(loss_fn)(params)
        updates, opt = tx.update(grads, opt, params)
        return optax.apply_updates(params, updates), opt, loss

    train, evaluate = jax.jit(step, donate_argnums=(0, 1)), jax.jit(forward)
    rng = np.random.default_rng(7)
    x, y = rng.normal(size=(120, 8)).astype(np.float32), rng.integers(0, 4, 120)
    told = []
    for number in range(STEPS):
        rows = rng.permutation(120)[:12]
        key, part = jax.random.split(key)
        params, opt, loss = train(params, opt, jnp.asarray(x[rows]), jnp.asarray(y[rows]), part)
        told.append(float(loss).hex())
        if number % 20 == 19:
            told.append(float(evaluate(params, x).sum()).hex())
    held = [*jax.tree_util.tree_leaves((params, opt)), jax.random.key_data(key)]
    return told + [np.asarray(v).tobytes().hex() for v in held] + of_process()


@cache
def unobserved(run: Callable[[], list[str]]) -> list[str]:
    """What a run gives without instruments: once for all probes."""
    return seeded(run)


def seeded(run: Callable[[], list[str]]) -> list[str]:
    random.seed(1)
    np.random.seed(1)
    return run()


@pytest.mark.parametrize("probes", PROBES, ids="+".join)
@pytest.mark.parametrize("run", [convolutional, attention], ids=lambda r: r.__name__)
def test_torch_trains_as_if_nobody_looked(run: Callable[[], list[str]], probes: tuple[str, ...],
                                          tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from traindx_tools.on_torch import attachment

    bare = unobserved(run)
    assert with_probes(attachment, lambda: seeded(run), tmp_path, probes) == bare


@pytest.mark.parametrize("probes", PROBES, ids="+".join)
def test_jax_trains_as_if_nobody_looked(probes: tuple[str, ...], tmp_path: Path) -> None:
    pytest.importorskip("jax")
    pytest.importorskip("optax")
    from traindx_tools.on_jax import attachment

    before = of_process()
    bare = jitted()
    assert with_probes(attachment, jitted, tmp_path, probes) == bare
    assert of_process() == before
