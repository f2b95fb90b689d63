"""The failure modes that come with traindx: complete, consistent, and true to the rules and commands that exist."""

from __future__ import annotations

import ast
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from traindx.group import COMMANDS
from traindx_tools.catalog.catalog import MODES, FailureMode, Step, load_catalog
from traindx_tools.catalog.page import without_values
from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.rules import all_rules, explained_rules

CATALOG = load_catalog()

PROGRAMS = {
    "python", "pip", "torchrun", "traindx", "grep", "df", "du", "ls", "ps", "ss", "env", "dmesg", "nvidia-smi",
    "py-spy", "compute-sanitizer",
}  # fmt: skip
NEAR = ("cause", "sign")
"""Roles that name a mode and not only go along with it."""


def _steps(mode: FailureMode) -> tuple[Step, ...]:
    return mode.confirm + mode.rule_out


def _texts(mode: FailureMode) -> list[str]:
    plans = [text for plan in (mode.targeted, mode.broader) for text in vars(plan).values()]
    steps = [text for step in _steps(mode) for text in (step.do, step.expect)]
    forms = [text for variant in mode.variants for text in _texts(replace(mode, variants=(), **variant.changes))]
    return [mode.title, mode.claim, mode.mechanism, *plans, *steps, *mode.will_change, *mode.will_not_fix, *forms]


def test_every_form_of_a_mode_says_something_of_its_own() -> None:
    forms = [(mode, v) for mode in CATALOG.values() for v in mode.variants]
    assert forms
    for mode, variant in forms:
        assert variant.changes, mode.id
        assert variant.claim != mode.claim
        assert variant.claim is None or not variant.claim.endswith(".")


WITNESSED = re.compile(r"(?i)\bkill|SIGKILL|exit code|\btime-?out|timed out")
"""What a claim may say only where a finding saw it."""


@pytest.mark.parametrize("mode", ["mem.host-oom", "dist.rank-failed-first", "dist.collectives-differ"])
def test_a_claim_of_several_forms_says_nothing_that_only_one_of_them_saw(mode: str) -> None:
    assert WITNESSED.search(CATALOG[mode].claim) is None


@pytest.mark.parametrize(("kind", "killed"), [
    ("oom-killer", True), ("killed", True), ("exit-137", True), ("allocation-refused", False),
    ("allocation-absurd", False), ("own-limit", False), ("", False),
])  # fmt: skip
def test_only_what_was_killed_is_said_to_be(kind: str, *, killed: bool) -> None:
    seen = Finding("L509", "memory", Severity.CRITICAL, Bearing.SIGN, "the host is full", Location(step=3), "a.log",
                   {"kind": kind})
    said = CATALOG["mem.host-oom"].in_case([seen]).claim
    assert (re.search(r"SIGKILL|kernel", said) is not None) is killed


@pytest.mark.parametrize(("read", "said"), [
    (("C108", "too early"), "made after the optimizer was built"),
    (("C276", "left"), "the list of parameters or groups"),
    (None, "the list of parameters or groups"), (("T301", "unregistered"), "are not registered"),
])
def test_what_says_why_words_a_mode_before_what_says_that_it_is_so(read: tuple[str, str] | None, said: str) -> None:
    def found(rule: str, kind: str) -> Finding:
        return Finding(rule, rule, Severity.HIGH, Bearing.CAUSE, "seen", Location(step=3), "a.log", {"kind": kind})

    findings = [found("T301", "left-out"), *([found(*read)] if read is not None else [])]
    assert said in CATALOG["opt.wrong-parameters"].in_case(findings).claim


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


def _problems(check: Callable[[FailureMode], Iterable[str]]) -> list[str]:
    return [f"{mode.id}: {problem}" for mode in CATALOG.values() for problem in check(mode)]


def test_every_mode_is_complete() -> None:
    def check(mode: FailureMode) -> Iterator[str]:
        if not re.fullmatch(r"[a-z0-9]+\.[a-z0-9]+(-[a-z0-9]+)*", mode.id):
            yield "the id is not of the form area.name-of-it"
        if mode.claim.endswith("."):
            yield "the engine adds the strongest finding and the full stop to the claim"
        if len(re.findall(r"[.:;?](?=\s|$)", mode.mechanism)) < 2:
            yield "a mechanism is two to four sentences"
        if not mode.sources or not mode.look_alikes:
            yield "sources and look-alikes are needed"
        if not all(source.where.startswith("https://") or source.where == "arithmetic" for source in mode.sources):
            yield "a source is a page or arithmetic"
        if not all(step.expect for step in _steps(mode)):
            yield "a check without an expectation settles nothing"
        if not any(step.command for step in mode.confirm):
            yield "no command confirms it"
        if mode.targeted.change == mode.broader.change:
            yield "two fixes are needed, not one twice"

    assert _problems(check) == []


def test_placeholders_read_well_without_values() -> None:
    def check(mode: FailureMode) -> Iterator[str]:
        for text in _texts(mode):
            if "{" in re.sub(r"\{\w+\|[^{}]+\}", "", text):
                yield f"a placeholder needs words for when nothing was measured: {text}"
            if "{" in without_values(text):
                yield f"a placeholder is left: {text}"

    assert _problems(check) == []


def test_commands_exist() -> None:
    def check(mode: FailureMode) -> Iterator[str]:
        commands = [re.sub(r"\{\w+\|([^{}]*)\}", r"\1", step.command) for step in _steps(mode)]
        return (c for c in commands if c and not _is_shell(c) and not _is_python(c))

    assert _problems(check) == []


@pytest.mark.parametrize(("command", "good"), [
    ("traindx log PATH --format csv", True),
    ("CUDA_LAUNCH_BLOCKING=1 python train.py", True),
    ("print(x.min())", True),
    ("traindx frobnicate PATH", False),
    ("python -c 'print('", False),
    ("rm -rf checkpoints", False),
    ("print(x", False),
])  # fmt: skip
def test_a_command_that_does_not_exist_is_noticed(command: str, good: bool) -> None:
    assert (_is_shell(command) or _is_python(command)) == good


def _is_shell(command: str) -> bool:
    try:
        words = shlex.split(command)
    except ValueError:
        return False
    words = words[next((i for i, word in enumerate(words) if not re.fullmatch(r"[A-Z_]+=.*", word)), 0):]
    if words[0] not in PROGRAMS:
        return False
    if words[0] == "traindx":
        return words[1] in COMMANDS
    if words[:2] == ["python", "-c"]:
        return _is_python(words[2])
    return True


def _is_python(code: str) -> bool:
    try:
        ast.parse(code)
    except SyntaxError:
        return False
    return True


def test_look_alikes_exist_and_are_others() -> None:
    def check(mode: FailureMode) -> Iterator[str]:
        return (like.mode for like in mode.look_alikes if like.mode not in CATALOG or like.mode == mode.id)

    assert _problems(check) == []


def test_rules_exist() -> None:
    known = set(explained_rules())

    def check(mode: FailureMode) -> Iterator[str]:
        return (rule for rule in sorted({e.rule for e in mode.speaks_for + mode.speaks_against} - known))

    assert _problems(check) == []


def test_a_list_of_values_is_meant_as_one() -> None:
    """`in a,b` is a list; a value that begins with "in " by itself has to be written as a regular expression."""

    def check(mode: FailureMode) -> Iterator[str]:
        tests = (str(c.test) for e in mode.speaks_for + mode.speaks_against for c in e.when)
        return (t for t in tests if t.startswith("in ") and any(" " in x.strip() for x in t[3:].split(",")))

    assert _problems(check) == []


def test_every_rule_speaks_for_some_mode() -> None:
    named = {entry.rule for mode in CATALOG.values() for entry in mode.speaks_for + mode.speaks_against}
    assert sorted(set(all_rules()) - named) == []


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
def test_what_a_log_can_prove_has_a_rule_of_logs_that_names_it(mode_id: str, rules: set[str]) -> None:
    assert any(e.rule in rules and e.role in NEAR for e in CATALOG[mode_id].speaks_for)


CURVES = re.compile("L[^5]")
"""Rules on metrics. An error message (L5) may name a cause that no curve can."""

CODE_ONLY = (
    "accum.zero-grad-missing", "accum.zero-grad-in-window", "amp.clip-before-unscale", "opt.wrong-parameters",
    "label.shifted-twice", "eval.mode-never-undone", "num.bf16-update-rounding", "accum.zero-grad-before-step",
    "jax.key-reuse", "jax.straight-through-lost", "mem.graph-kept",
    "num.where-unsafe-branch", "grad.sqrt-at-zero", "num.adam-eps-half", "init.constant-weights",
)  # fmt: skip


@pytest.mark.parametrize("mode_id", CODE_ONLY)
def test_curves_alone_never_prove_what_only_code_proves(mode_id: str) -> None:
    mode = CATALOG[mode_id]
    assert not any(e.role == "cause" for e in mode.speaks_for if CURVES.match(e.rule))
    assert any(e.role in NEAR for e in mode.speaks_for if e.rule.startswith("C"))


def test_each_file_is_plain_text_of_bounded_size() -> None:
    for path in MODES.rglob("*.toml"):
        text = Path(path).read_text(encoding="utf-8")
        assert len(text) < 12_000
        assert "\t" not in text
