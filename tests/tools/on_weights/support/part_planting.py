"""Small trained models with one tensor whose relation to its partners is broken, and the same models without it.

Each function gives files by name, as what torch.save takes; `bad` plants the fault and changes nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import pairwise
from typing import Any

import torch
from torch import nn

Files = dict[str, Any]
F = nn.functional


class Convolutions(nn.Module):
    """Six convolutions with batch norm, and a classifier."""

    def __init__(self, width: int = 24, layers: int = 6) -> None:
        super().__init__()
        sizes = [3, *[width] * layers]
        self.convs = nn.ModuleList(nn.Conv2d(a, b, 3, padding=1, bias=False) for a, b in pairwise(sizes))
        self.norms = nn.ModuleList(nn.BatchNorm2d(width) for _ in range(layers))
        self.head = nn.Linear(width, 5)

    def forward(self, x: Any) -> Any:
        for conv, norm in zip(self.convs, self.norms, strict=True):
            x = F.relu(norm(conv(x)))
        return self.head(x.mean((2, 3)))


@cache
def convolutions(seed: int = 0) -> Convolutions:
    torch.manual_seed(seed)
    model = Convolutions()
    kinds = torch.randn(5, 3, 12, 12)
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    for _ in range(60):
        y = torch.randint(0, 5, (48,))
        optimizer.zero_grad()
        F.cross_entropy(model(kinds[y] + 1.5 * torch.randn(48, 3, 12, 12)), y).backward()
        optimizer.step()
    return model.eval()


def fused(norm_of: Callable[[int], int]) -> dict[str, Any]:
    """The convolutions with norms folded in; layer k takes the norm of layer `norm_of(k)`."""
    model, made = convolutions(), {}
    for k, conv in enumerate(model.convs):
        norm: Any = model.norms[norm_of(k)]
        scale = norm.weight / torch.sqrt(norm.running_var + norm.eps)
        made[f"convs.{k}.weight"] = (conv.weight * scale[:, None, None, None]).detach().clone()
        made[f"convs.{k}.bias"] = (norm.bias - norm.running_mean * scale).detach().clone()
    return made | {n: t.clone() for n, t in model.head.state_dict(prefix="head.").items()}


def fused_with_another_norm(bad: bool) -> Files:
    return {"model.pt": fused(lambda k: 2 if bad and k == 3 else k), "before.pt": convolutions().state_dict()}


class Block(nn.Module):
    def __init__(self, width: int, bias: bool) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.q, self.k, self.v, self.o = (nn.Linear(width, width, bias=bias) for _ in range(4))
        self.up, self.down = nn.Linear(width, 3 * width, bias=bias), nn.Linear(3 * width, width, bias=bias)

    def forward(self, x: Any) -> Any:
        h = self.norm1(x)
        q, k, v = (m(h).unflatten(-1, (4, -1)).transpose(1, 2) for m in (self.q, self.k, self.v))
        x = x + self.o(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(-2))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Decoder(nn.Module):
    def __init__(self, bias: bool, width: int = 48, words: int = 96, layers: int = 5) -> None:
        super().__init__()
        self.wte = nn.Embedding(words, width)
        self.blocks = nn.ModuleList(Block(width, bias) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)

    def forward(self, tokens: Any) -> Any:
        x = self.wte(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


@cache
def decoder(bias: bool = True, seed: int = 0, steps: int = 120) -> tuple[dict[str, Any], dict[str, Any]]:
    """Weights and state of the optimizer after some steps on a Markov chain with frequent and rare words."""
    torch.manual_seed(seed)
    model, words = Decoder(bias), 96
    following = torch.softmax(torch.randn(words, words) * 1.5 - 0.04 * torch.arange(words), -1)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    for _ in range(steps):
        tokens = torch.randint(0, words, (24, 1))
        for _ in range(24):
            tokens = torch.cat([tokens, torch.multinomial(following[tokens[:, -1]], 1)], 1)
        optimizer.zero_grad()
        F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten()).backward()
        optimizer.step()
    return {n: t.clone() for n, t in model.state_dict().items()}, optimizer.state_dict()


def moments_exchanged(bad: bool, bias: bool = True) -> Files:
    """The moments of two matrices of one shape are in each other's place."""
    weights, state = decoder(bias)
    numbers = list(weights)  # all are parameters, in this order
    kept = {k: dict(v) for k, v in state["state"].items()}
    if bad:
        one, other = numbers.index("blocks.1.up.weight"), numbers.index("blocks.3.up.weight")
        for name in ("exp_avg", "exp_avg_sq"):
            kept[one][name], kept[other][name] = kept[other][name], kept[one][name]
    return {"model.pt": {"model": weights, "optimizer": {"state": kept, "param_groups": state["param_groups"]}}}


def wrapped(bad: bool) -> Files:
    """Weights in int8 with a scale a row; those of one layer were not clamped before the cast."""
    weights, _ = decoder()
    made: dict[str, Any] = {}
    for name, value in weights.items():
        if value.ndim < 2 or not name.startswith("blocks"):
            made[name] = value
            continue
        largest = value.abs().amax(1, keepdim=True)
        scale = largest / 127 * (0.8 if bad and name == "blocks.2.up.weight" else 1.0)
        made[name] = torch.round(value / scale).to(torch.int64).to(torch.int8)
        made[name.replace("weight", "scale")] = scale[:, 0]
    return {"model.pt": made}


class Recurrent(nn.Module):
    def __init__(self, width: int = 40, layers: int = 3) -> None:
        super().__init__()
        self.wte = nn.Embedding(32, width)
        self.rnn = nn.LSTM(width, width, layers, batch_first=True)
        self.head = nn.Linear(width, 32)
        for name, p in self.rnn.named_parameters():
            if "bias_ih" in name:
                with torch.no_grad():
                    p[width:2 * width] += 1.0  # the usual bias of forget gates

    def forward(self, x: Any) -> Any:
        return self.head(self.rnn(self.wte(x))[0])


@cache
def recurrent() -> dict[str, Any]:
    torch.manual_seed(0)
    model = Recurrent()
    optimizer = torch.optim.Adam(model.parameters(), 5e-3)
    for _ in range(150):
        x = torch.randint(0, 32, (32, 12))
        y = torch.cumsum(x, 1) % 32 // 8 + 8 * (x % 2)
        optimizer.zero_grad()
        F.cross_entropy(model(x).flatten(0, 1), y.flatten()).backward()
        optimizer.step()
    return {n: t.detach().clone() for n, t in model.state_dict().items()}


def gates_in_another_order(bad: bool) -> Files:
    """One layer of an LSTM has its gates as i, o, f, g where the others have i, f, g, o."""
    made = {n: t.clone() for n, t in recurrent().items()}
    for name in made:
        if bad and name.endswith("_l1"):
            i, f, g, o = made[name].chunk(4)
            made[name] = torch.cat([i, o, f, g])
    return {"model.pt": made}


def adapter_twice(bad: bool, with_adapter: bool = False) -> Files:
    """A base, and the same with an adapter merged; into one shard of two it was merged twice."""
    base, _ = decoder()
    generator = torch.Generator().manual_seed(3)
    merged, adapter = {}, {}
    for name, value in base.items():
        if name.endswith(("q.weight", "v.weight")):
            a, b = (torch.randn(shape, generator=generator) for shape in ((4, value.shape[1]), (value.shape[0], 4)))
            adapter[f"base_model.model.{name.removesuffix('.weight')}.lora_A.weight"] = a * 0.05
            adapter[f"base_model.model.{name.removesuffix('.weight')}.lora_B.weight"] = b * 0.05
            times = 2 if bad and name.startswith(("blocks.3", "blocks.4")) else 1
            merged[name] = value + times * 2.0 * (b * 0.05) @ (a * 0.05)
        else:
            merged[name] = value
    files = {"model.pt": merged, "before.pt": base}
    return files | ({"adapter.pt": adapter} if with_adapter else {})


def head_not_renumbered(bad: bool) -> Files:
    """The rows of the embedding were put in the order of a new vocabulary, those of the output layer were not."""
    base, _ = decoder()
    order = torch.randperm(96, generator=torch.Generator().manual_seed(5))
    made = dict(base) | {"wte.weight": base["wte.weight"][order]}
    if not bad:
        made["head.weight"] = base["head.weight"][order]
    return {"model.pt": made, "before.pt": base}


SETS: dict[str, Callable[[bool], Files]] = {
    f.__name__: f for f in (fused_with_another_norm, moments_exchanged, wrapped, gates_in_another_order, adapter_twice,
                            head_not_renumbered)}
