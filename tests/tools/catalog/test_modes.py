"""The failure modes that come with traindx: complete, consistent, and true to the rules and commands that exist."""

from __future__ import annotations

import ast
import math
import re
import shlex
from collections import Counter
from pathlib import Path

import pytest

from traindx_tools.catalog.catalog import MODES, FailureMode, Step, load_catalog
from traindx_tools.catalog.page import without_values
from traindx_tools.rules import all_rules

CATALOG = load_catalog()
BY_ID = pytest.mark.parametrize("mode", CATALOG.values(), ids=list(CATALOG))

TRAINDX_COMMANDS = {"diagnose", "debug", "log", "plot", "explain", "doctor"}
PROGRAMS = {
    "python", "pip", "torchrun", "traindx", "grep", "df", "du", "ls", "ps", "ss", "env", "dmesg", "nvidia-smi",
    "py-spy", "compute-sanitizer",
}  # fmt: skip
CONFIDENT = math.log(0.7 / 0.3)
"""Log-odds at which a lone hypothesis reaches the confidence of 0.70 from which it is stated as the cause."""


def _steps(mode: FailureMode) -> tuple[Step, ...]:
    return mode.confirm + mode.rule_out


def _texts(mode: FailureMode) -> list[str]:
    plans = [text for plan in (mode.targeted, mode.broader) for text in vars(plan).values()]
    steps = [text for step in _steps(mode) for text in (step.do, step.expect)]
    return [mode.title, mode.claim, mode.mechanism, *plans, *steps, *mode.will_change, *mode.will_not_fix]


def test_there_are_enough_modes_and_every_family_has_one() -> None:
    from traindx_tools.catalog.catalog import FAMILIES

    assert len(CATALOG) >= 60
    assert {mode.family for mode in CATALOG.values()} == FAMILIES


def test_a_file_lies_in_its_family_under_its_id() -> None:
    paths = {path.relative_to(MODES).as_posix() for path in MODES.rglob("*.toml")}
    assert paths == {f"{mode.family}/{mode.id}.toml" for mode in CATALOG.values()}


def test_no_two_modes_say_the_same() -> None:
    for field in ("claim", "title", "mechanism"):
        counts = Counter(getattr(mode, field).casefold() for mode in CATALOG.values())
        assert [text for text, n in counts.items() if n > 1] == []


@BY_ID
def test_a_mode_is_complete(mode: FailureMode) -> None:
    assert re.fullmatch(r"[a-z0-9]+\.[a-z0-9]+(-[a-z0-9]+)*", mode.id)
    assert not mode.claim.endswith("."), "the engine adds the strongest finding and the full stop"
    assert len(re.findall(r"[.:;?](?=\s|$)", mode.mechanism)) >= 2, "a mechanism is two to four sentences"
    assert mode.sources
    assert all(source.where.startswith("https://") or source.where == "arithmetic" for source in mode.sources)
    assert all(step.expect for step in _steps(mode)), "a check without an expectation settles nothing"
    assert any(step.command for step in mode.confirm)
    assert mode.targeted.change != mode.broader.change


@BY_ID
def test_placeholders_read_well_without_values(mode: FailureMode) -> None:
    for text in _texts(mode):
        assert "{" not in re.sub(r"\{\w+\|[^{}]+\}", "", text), f"a placeholder needs a fallback: {text}"
        assert "{" not in without_values(text)


@BY_ID
def test_commands_exist(mode: FailureMode) -> None:
    for command in filter(None, (step.command for step in _steps(mode))):
        assert _is_shell(command) or _is_python(command), command


def _is_shell(command: str) -> bool:
    try:
        words = shlex.split(command)
    except ValueError:
        return False
    words = words[next((i for i, word in enumerate(words) if not re.fullmatch(r"[A-Z_]+=.*", word)), 0):]
    if words[0] not in PROGRAMS:
        return False
    if words[0] == "traindx":
        return words[1] in TRAINDX_COMMANDS
    if words[:2] == ["python", "-c"]:
        return _is_python(words[2])
    return True


def _is_python(code: str) -> bool:
    try:
        ast.parse(code)
    except SyntaxError:
        return False
    return True


@BY_ID
def test_look_alikes_exist_and_are_others(mode: FailureMode) -> None:
    named = [like.mode for like in mode.look_alikes]
    assert mode.id not in named
    assert [name for name in named if name not in CATALOG] == []


@BY_ID
def test_rules_exist(mode: FailureMode) -> None:
    rules = {entry.rule for entry in mode.speaks_for + mode.speaks_against}
    assert sorted(rules - set(all_rules())) == []


@BY_ID
def test_some_evidence_can_carry_the_claim(mode: FailureMode) -> None:
    assert mode.prior <= -2
    assert mode.prior + sum(entry.weight for entry in mode.speaks_for) > -0.5


@pytest.mark.parametrize(("mode_id", "rules"), [
    ("fit.overfitting", {"L203"}),
    ("lr.zero-early", {"L301", "L306"}),
    ("lr.too-high", {"L307", "L102"}),
    ("lr.too-high", {"L307", "L106"}),
    ("lr.restart-on-resume", {"L302"}),
    ("lr.stepped-too-often", {"L306"}),
    ("lr.compounding-decay", {"L303"}),
    ("lr.epoch-step-confusion", {"L304"}),
    ("lr.missing-warmup", {"L305"}),
    ("loader.input-bound", {"L402"}),
    ("jax.scan-carry-mismatch", {"L517"}),
    ("amp.half-weights-with-gradscaler", {"L513"}),
    ("rl.zero-advantages", {"L602"}),
    ("vae.posterior-collapse", {"L607"}),
    ("loss.component-domination", {"L209"}),
    ("dist.unused-parameters", {"L521"}),
    ("index.label-beyond-classes", {"L501"}),
])  # fmt: skip
def test_a_log_alone_proves_what_a_log_can_prove(mode_id: str, rules: set[str]) -> None:
    mode = CATALOG[mode_id]
    best = {rule: max(e.weight for e in mode.speaks_for if e.rule == rule) for rule in rules}
    assert mode.prior + sum(best.values()) >= CONFIDENT


CODE_ONLY = (
    "accum.zero-grad-missing", "accum.zero-grad-in-window", "amp.clip-before-unscale", "opt.wrong-parameters",
    "label.shifted-twice", "eval.mode-never-undone", "num.bf16-update-rounding", "rl.groups-misaligned",
    "vq.ema-revival-undone", "jax.key-reuse", "jax.straight-through-lost", "mem.graph-kept",
    "num.where-unsafe-branch", "grad.sqrt-at-zero", "num.adam-eps-half", "init.constant-weights",
)  # fmt: skip


@pytest.mark.parametrize("mode_id", CODE_ONLY)
def test_a_log_alone_never_proves_what_only_code_proves(mode_id: str) -> None:
    mode = CATALOG[mode_id]
    by_rule: dict[str, float] = {}
    for entry in mode.speaks_for:
        if entry.rule.startswith("L"):
            by_rule[entry.rule] = by_rule.get(entry.rule, 0.0) + entry.weight
    assert mode.prior + sum(sorted(by_rule.values(), reverse=True)[:3]) < CONFIDENT
    direct = max(entry.weight for entry in mode.speaks_for if entry.rule.startswith("C"))
    assert mode.prior + direct >= CONFIDENT


def test_each_file_is_plain_text_of_bounded_size() -> None:
    for path in MODES.rglob("*.toml"):
        text = Path(path).read_text(encoding="utf-8")
        assert len(text) < 12_000
        assert "\t" not in text
