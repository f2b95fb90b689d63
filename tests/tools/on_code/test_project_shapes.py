"""Whole programs as people write them: nothing is said of them as they are, and each fault put into them is named.

A fault is a replacement of text in the healthy program; the rule has to name the line (or one within three of it).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from traindx_tools.code_audit import audit
from traindx_tools.edits.patches import applied
from traindx_tools.finding import Severity

PROJECTS = Path(__file__).parent / "projects"
FAULTS: tuple[tuple[str, str, str, str, str], ...] = (
    (
        "trainer_subclass",
        "F.log_softmax(outputs.logits / t, dim=-1), F",
        "F.softmax(outputs.logits / t, dim=-1), F",
        "C102",
        "",
    ),
    (
        "trainer_subclass",
        "(outputs.logits, labels, weight=weights)",
        "(outputs.logits.softmax(-1), labels, weight=weights)",
        "C102",
        "",
    ),
    (
        "lightning_module",
        "nn.ModuleList([nn.Conv2d(3, width, 3, padding=1), nn.Conv2d(width, width, 3, padding=1)])",
        "[nn.Conv2d(3, width, 3, padding=1), nn.Conv2d(width, width, 3, padding=1)]",
        "C143",
        "",
    ),
    ("lightning_module", ", 0.1, training=self.training)", ", 0.1)", "C144", ""),
    ("lightning_module", "cross_entropy(logits, masks)", "cross_entropy(logits.softmax(1), masks)", "C102", ""),
    ("accelerate_script", "                optimizer.zero_grad()\n", "", "C101", ""),
    (
        "accelerate_script",
        "optimizer.zero_grad()\n",
        "optimizer.zero_grad()\n            model.zero_grad()\n",
        "C113",
        "",
    ),
    ("accelerate_script", "seen += loss.detach()", "seen += loss", "C103", ""),
    ("accelerate_script", "with torch.no_grad():", "if True:", "C105", ""),
    ("ddp_loop", "            scaler.unscale_(optimizer)\n", "", "C106", ""),
    ("ddp_loop", "            scaler.update()\n", "", "C142", ""),
    ("ddp_loop", "        sampler.set_epoch(epoch)\n", "", "C140", "sampler = DistributedSampler(data)"),
    ("ddp_loop", "            optimizer.zero_grad(set_to_none=True)\n", "", "C101", "scaler.step(optimizer)"),
    (
        "ddp_loop",
        "    dist.all_reduce(hits)\n    model.train()\n",
        "    dist.all_reduce(hits)\n",
        "C104",
        "model.eval()",
    ),
    ("ddp_loop", "loss = F.cross_entropy(model(x), y)", "loss = F.cross_entropy(model.module(x), y)", "C141", ""),
    ("ddp_loop", "            print(epoch,", "            dist.barrier()\n            print(epoch,", "C117", ""),
    (
        "ddp_loop",
        "            scaler.update()\n        schedule",
        "            scaler.update()\n            schedule",
        "C110",
        "",
    ),
    ("grpo_loop", "copy.deepcopy(policy).requires_grad_(False)", "policy", "C186", ""),
    ("grpo_loop", "torch.exp(logp - old_logp)", "torch.exp(old_logp - logp)", "C182", ""),
    ("grpo_loop", "torch.min(ratio * advantages", "torch.max(ratio * advantages", "C182", ""),
    (
        "grpo_loop",
        "            nn.utils.clip_grad_norm_(policy.parameters(), 1.0)\n            optimizer.step()",
        "            optimizer.step()\n            nn.utils.clip_grad_norm_(policy.parameters(), 1.0)",
        "C135",
        "",
    ),
    ("vq_vae", "F.mse_loss(q, z.detach()) + self", "F.mse_loss(q.detach(), z) + self", "C187", ""),
    ("vq_vae", "            optimizer.zero_grad()\n", "", "C101", ""),
    (
        "diffusion_loop",
        ".mul_(decay).add_(fast, alpha=1 - decay)",
        ".mul_(1 - decay).add_(fast, alpha=decay)",
        "C170",
        "",
    ),
    ("diffusion_loop", "total += loss.item()", "total += loss", "C103", ""),
    (
        "flax_train_state",
        'state.replace(batch_stats=updates["batch_stats"]), loss',
        "state, loss",
        "C507",
        "logits, updates = state.apply_fn(",
    ),
    ("flax_train_state", "labels[index], step_key)", "labels[index], init_key)", "C501", ""),
    (
        "flax_train_state",
        "with_integer_labels(logits, labels)",
        "with_integer_labels(nn.softmax(logits), labels)",
        "C102",
        "",
    ),
    ("flax_train_state", "        state, loss = train_step(", "        _, loss = train_step(", "C506", ""),
)
"""(program, text, what takes its place, rule, text on the line that is named where that is another line)"""


@pytest.mark.parametrize("path", sorted(PROJECTS.glob("*.py")), ids=lambda p: p.stem)
def test_nothing_is_said_of_a_healthy_program(path: Path) -> None:
    result = audit([path])
    assert not result.notes
    assert not [f for f in result.findings if f.severity.rank >= Severity.LOW.rank]


def lines_of(text: str, part: str) -> range:
    """The lines that a part of the text touches, and three around them."""
    first = text[: text.index(part)].count("\n") + 1
    return range(first - 3, first + part.count("\n") + 4)


@pytest.mark.parametrize(("project", "old", "new", "rule", "place"), FAULTS, ids=lambda value: str(value)[:24].strip())
def test_a_fault_is_named_at_its_line(project: str, old: str, new: str, rule: str, place: str, tmp_path: Path) -> None:
    text = (PROJECTS / f"{project}.py").read_text()
    assert text.count(old) == 1
    faulty = text.replace(old, new)
    path = tmp_path / "train.py"
    path.write_text(faulty)
    found = [f for f in audit([path]).findings if f.rule == rule]
    assert found
    expected = lines_of(faulty, place) if place else lines_of(text, old)
    assert any(f.where.line in expected for f in found)


@pytest.mark.parametrize(("project", "old", "new", "rule", "place"), FAULTS, ids=lambda value: str(value)[:24].strip())
def test_its_patch_makes_the_program_healthy(
    project: str, old: str, new: str, rule: str, place: str, tmp_path: Path
) -> None:
    """Where a patch is proposed, nothing is said of the program any more."""
    path = tmp_path / "train.py"
    path.write_text((PROJECTS / f"{project}.py").read_text().replace(old, new))
    patches = [p for f in audit([path]).findings if f.rule == rule for p in f.patch]
    if patches:
        path.write_text(applied(path.read_text(), tuple(dict.fromkeys(patches))))
        assert not [f for f in audit([path]).findings if f.severity.rank >= Severity.MEDIUM.rank]
