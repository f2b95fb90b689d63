"""Small trained models and their training state, for faults that a file's own redundancy tells."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch import nn


class Residual(nn.Module):
    """Residual layers with a projection that is called `v`."""

    def __init__(self, layers: int = 4, width: int = 24) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(
            nn.ModuleDict({"v": nn.Linear(width, width), "o": nn.Linear(width, width)}) for _ in range(layers))
        self.head = nn.Linear(width, 3)

    def forward(self, x: Any) -> Any:
        for block in self.blocks:
            x = x + block["o"](torch.tanh(block["v"](x)))  # type: ignore[index]
        return self.head(x)


@cache
def residual(optimizer: str = "AdamW", **extra: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """Weights and the optimizer's state after fifty steps with small gradients."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = Residual()
    stepping = getattr(torch.optim, optimizer)(model.parameters(), lr=1e-3, **extra)
    for _ in range(50):
        x = torch.randn(16, 24)
        stepping.zero_grad()
        ((model(x) - x[:, :3].sin()).pow(2).mean() * 1e-3).backward()
        stepping.step()
    return {n: t.clone() for n, t in model.state_dict().items()}, stepping.state_dict()


class LowRank(nn.Module):
    """A frozen layer with an adapter: `lora_B` begins at zero."""

    def __init__(self, layer: nn.Linear, rank: int = 4) -> None:
        super().__init__()
        self.layer = layer.requires_grad_(False)
        self.lora_A, self.lora_B = (nn.Linear(a, b, bias=False) for a, b in (
            (layer.in_features, rank), (rank, layer.out_features)))
        nn.init.zeros_(self.lora_B.weight)

    def forward(self, x: Any) -> Any:
        return self.layer(x) + 2 * self.lora_B(self.lora_A(x))


@cache
def adapter(still: tuple[str, ...] = (), steps: int = 30, layers: int = 8) -> dict[str, Any]:
    """An adapter of a residual model, trained but for what is called so in `still`: `blocks.3`, `blocks.2.v`."""
    torch.manual_seed(1)
    torch.set_num_threads(1)
    model = Residual(layers)
    for block in model.blocks:
        for name in ("v", "o"):
            block[name] = LowRank(block[name])  # type: ignore[index,operator]
    named = {n: p for n, p in model.named_parameters() if "lora" in n}
    for name, parameter in named.items():
        parameter.requires_grad_(not any(name.startswith(f"{s}.") for s in still))
    stepping = torch.optim.AdamW([p for p in named.values() if p.requires_grad], lr=1e-3)
    for _ in range(steps):
        x = torch.randn(16, 24)
        stepping.zero_grad()
        (model(x) - x[:, :3].sin()).pow(2).mean().backward()
        stepping.step()
    return {f"base_model.model.{n}": p.detach().clone() for n, p in named.items()}


@cache
def gated(still: tuple[int, ...] = (), layers: int = 6, width: int = 24, scalar: bool = True) -> dict[str, Any]:
    """Branches behind a gate, or a last projection, that begins at zero; those of some layers are not trained."""
    torch.manual_seed(2)
    torch.set_num_threads(1)
    made = nn.ModuleList(nn.ModuleDict({"up": nn.Linear(width, width), "down": nn.Linear(width, width)})
                         for _ in range(layers))
    gates = nn.ParameterList(nn.Parameter(torch.zeros(())) for _ in range(layers))
    head = nn.Linear(width, 3)
    for at, block in enumerate(made):
        if not scalar:
            nn.init.zeros_(block["down"].weight)  # type: ignore[index]
            nn.init.zeros_(block["down"].bias)  # type: ignore[index]
        block.requires_grad_(at not in still)
        gates[at].requires_grad_(at not in still)
    stepping = torch.optim.Adam([p for m in (made, gates, head) for p in m.parameters() if p.requires_grad], lr=3e-3)
    for _ in range(60):
        x = first = torch.randn(16, width)
        for block, gate in zip(made, gates, strict=True):
            branch = block["down"](torch.tanh(block["up"](x)))  # type: ignore[index]
            x = x + (gate * branch if scalar else branch)
        stepping.zero_grad()
        loss: Any = (head(x) - first[:, :3].sin()).pow(2).mean()
        loss.backward()
        stepping.step()
    weights = {f"blocks.{n}": t for n, t in made.state_dict().items()} | {
        f"head.{n}": t for n, t in head.state_dict().items()}
    gate_tensors = {f"blocks.{k}.attn_gate": g.detach() for k, g in enumerate(gates)} if scalar else {}
    return {n: t.clone() for n, t in (weights | gate_tensors).items()}


@cache
def wide(seed: int = 0, layers: int = 6, width: int = 64) -> dict[str, Any]:
    """A residual model with square matrices whose inputs are of different scales, as outputs of trained layers are."""
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    model = nn.ModuleDict({"blocks": nn.ModuleList(
        nn.ModuleDict({"norm": nn.LayerNorm(width), "up": nn.Linear(width, width), "down": nn.Linear(width, width),
                       "out": nn.Linear(width, 3 * width), "back": nn.Linear(3 * width, width)})
        for _ in range(layers)), "head": nn.Linear(width, 8)})
    scales = torch.logspace(-0.7, 0.7, width)[torch.randperm(width)]
    stepping = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.1)
    truth = torch.randn(width, 8)
    for _ in range(60):
        first = x = torch.randn(32, width) * scales
        for block in model["blocks"]:  # type: ignore[attr-defined]
            x = x + block["down"](torch.relu(block["up"](block["norm"](x))))
            x = x + block["back"](torch.relu(block["out"](x)))
        stepping.zero_grad()
        loss: Any = nn.functional.cross_entropy(model["head"](x), (first @ truth).argmax(1))
        loss.backward()
        stepping.step()
    return {n: t.clone() for n, t in model.state_dict().items()}


def in_eight_bits(weights: dict[str, Any], fault: str = "", names: tuple[str, ...] = (), column: bool = False,
                  shaped: bool = False) -> dict[str, Any]:
    """Codes and scales, one a row (or `column`). `fault` in the matrices `names`: `codes` were made along the other
    axis, `scales` are of the other axis, `divided` by the scales along the other axis. `shaped`: scales of two axes."""
    made: dict[str, Any] = {}
    for name, value in weights.items():
        if value.ndim < 2 or not name.startswith("blocks"):
            made[name] = value
            continue
        own = fault if name in names else ""
        axis, other = (0, 1) if column else (1, 0)
        by = value.abs().amax(other if own == "codes" else axis, keepdim=True) / 127
        divisor = by.T if own == "divided" else by
        made[name] = torch.round(value / divisor).clamp(-127, 127).to(torch.int8)
        kept = value.abs().amax(other, keepdim=True).T / 127 if own == "scales" else by
        made[name + "_scale"] = kept if shaped else kept.flatten()
    return made


class Patches(nn.Module):
    """Patches of an image with learned positions, each looked at by itself; says where a blob is."""

    def __init__(self, grid: tuple[int, int] = (8, 8), width: int = 96, prefix: int = 1) -> None:
        super().__init__()
        self.grid, self.prefix = grid, prefix
        self.patch_embed = nn.Conv2d(1, width, 2, 2)
        self.pos_embed = nn.Parameter(torch.randn(1, prefix + grid[0] * grid[1], width) * 0.02)
        self.cls = nn.Parameter(torch.zeros(1, prefix, width))
        self.up, self.down = nn.Linear(width, width), nn.Linear(width, width)
        self.head = nn.Linear(width, 2)

    def forward(self, images: Any) -> Any:
        x = self.patch_embed(images).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls.expand(len(x), -1, -1), x], 1) + self.pos_embed
        return self.head((x + self.down(torch.relu(self.up(x)))).mean(1))


@cache
def patches(grid: tuple[int, int] = (8, 8), prefix: int = 1, steps: int = 50, width: int = 64) -> dict[str, Any]:
    """Weights after some steps of finding a blob in a noisy image."""
    torch.manual_seed(3)
    torch.set_num_threads(1)
    model = Patches(grid, width, prefix)
    stepping = torch.optim.Adam(model.parameters(), 2e-3)
    rows, columns = torch.meshgrid(torch.arange(2.0 * grid[0]), torch.arange(2.0 * grid[1]), indexing="ij")
    for _ in range(steps):
        place = torch.rand(16, 2) * 2 * torch.tensor(grid)
        blob = torch.exp(-((rows - place[:, 0, None, None]) ** 2 + (columns - place[:, 1, None, None]) ** 2) / 6)
        stepping.zero_grad()
        wanted = place / torch.tensor(grid) - 1
        (model((blob + 0.1 * torch.randn_like(blob))[:, None]) - wanted).pow(2).mean().backward()
        stepping.step()
    return {n: t.clone() for n, t in model.state_dict().items()}


def resized(weights: dict[str, Any], to: tuple[int, int], flat: bool, grid: tuple[int, int] = (8, 8),
            mode: str = "bilinear", prefix: int = 1) -> dict[str, Any]:
    """Positions for another grid, interpolated in both directions, or `flat` along the sequence."""
    table = weights["pos_embed"]
    first, rest = table[:, :prefix], table[:, prefix:]
    if flat:
        rest = nn.functional.interpolate(rest.transpose(1, 2), to[0] * to[1], mode="linear").transpose(1, 2)
    else:
        square = rest.reshape(1, *grid, -1).permute(0, 3, 1, 2)
        rest = nn.functional.interpolate(square, to, mode=mode).permute(0, 2, 3, 1).flatten(1, 2)
    return {**weights, "pos_embed": torch.cat([first, rest], 1)}


class Normed(nn.Module):
    """Residual blocks with normalisation."""

    def __init__(self, layers: int, width: int = 64) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(nn.ModuleDict({
            "norm": nn.LayerNorm(width), "up": nn.Linear(width, 2 * width), "down": nn.Linear(2 * width, width)})
            for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 6)

    def forward(self, x: Any) -> Any:
        for block in self.blocks:
            x = x + block["down"](nn.functional.gelu(block["up"](block["norm"](x))))  # type: ignore[index]
        return self.head(self.norm(x))


@cache
def snapshots(layers: int = 9, steps: tuple[int, ...] = (20, 80), seed: int = 0) -> dict[int, dict[str, Any]]:
    """By step: weights, a moving average of them, and the optimizer's state."""
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    model, truth = Normed(layers), torch.randn(64, 6)
    stepping = torch.optim.AdamW(model.parameters(), 1e-3)
    average = {n: t.clone() for n, t in model.state_dict().items()}
    made = {}
    for step in range(1, max(steps) + 1):
        x = torch.randn(32, 64)
        stepping.zero_grad()
        loss: Any = nn.functional.cross_entropy(model(x), (x.sin() @ truth).argmax(1))
        loss.backward()
        stepping.step()
        average = {n: 0.95 * t + 0.05 * model.state_dict()[n] for n, t in average.items()}
        if step in steps:
            state = {k: {n: t.clone() for n, t in s.items()} for k, s in stepping.state_dict()["state"].items()}
            made[step] = {"model": {n: t.clone() for n, t in model.state_dict().items()}, "ema": average,
                          "optimizer": {"state": state, "param_groups": stepping.state_dict()["param_groups"]}}
    return made
