"""Renders the skills' reference pages from the catalog and the rules, so that prose and engine never disagree.

`make skills` writes them; a test compares. Besides the pages it writes the table of references at the end of each
SKILL.md (from the "Read when" line of each reference) and copies the one script to every skill.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from traindx_tools.catalog.catalog import FailureMode, FixPlan, Speaks, Step, load_catalog
from traindx_tools.catalog.page import _condition, without_values
from traindx_tools.catalog.precision import COUNTER_ROLES, ROLES
from traindx_tools.errors import CatalogError
from traindx_tools.rules import RuleModule, all_rules

SCRIPT = "scripts/traindx_run.py"
SCRIPT_HOME = "ml-debug"
"""The skill whose copy of the script is written by hand; the others hold copies of it."""

SHARED = {
    "pytorch-debugging": ("gradients.md", "loss-components.md", "dtype-and-precision.md",
                          "train-inference-consistency.md", "autocast-and-parameter-swaps.md"),
    "research-debug": ("monitoring.md", "rl-collapse.md", "discrete-codes.md", "train-inference-consistency.md",
                       "autocast-and-parameter-swaps.md"),
}
"""References of ml-debug that another skill holds a copy of: each skill must work when it is installed alone."""

NOTICE = "<!-- Rendered by `make skills` from the catalog and the rules. Edit those. -->"
TABLE_HEAD = "| file | read when |\n|---|---|\n"
READ_WHEN = "Read when: "
MOST_EVIDENCE = 5
"""Findings listed for a mode on a reference page, the strongest first; `traindx explain` lists all."""


@dataclass(frozen=True)
class Page:
    """A reference page of failure modes: which skill it belongs to, when it is read, what is on it."""

    skill: str
    file: str
    title: str
    read_when: str
    families: tuple[str, ...]


_CRASH = ("Failure modes: crashes", "an exception names a shape, dtype, device, index, graph, file, key or version",
          ("index_error", "checkpoint", "configuration", "environment"))
_NUMERICS = ("Failure modes: NaN, inf and mixed precision",
             "NaN or inf appears, or a loss scale falls, and the cause is not yet known", ("nan_inf", "amp_order"))
_MEMORY = ("Failure modes: memory, data loading and speed",
           "out of memory, a killed worker, growing memory, or a run that is slow",
           ("oom", "dataloader", "performance"))
_COLLAPSE = ("Failure modes: collapse",
             "outputs, rewards, codes, entropy or a generator collapse, or KL or advantages are 0",
             ("rl_collapse", "codebook_collapse", "generative"))
_RANKS = ("Failure modes: several processes, hangs and resume",
          "a run hangs, ranks disagree, or a run is worse after resume", ("hang", "distributed", "resume"))
_JAX = ("Failure modes: JAX", "the program uses JAX and a cause is needed, not just a technique", ("jax",))

PAGES = (
    Page("ml-debug", "modes-numerics.md", *_NUMERICS),
    Page("ml-debug", "modes-divergence.md", "Failure modes: divergence, schedules and accumulation",
         "the loss rises, spikes or stalls and the learning rate, schedule or accumulation may be why",
         ("divergence", "lr_schedule", "grad_accumulation")),
    Page("ml-debug", "modes-not-learning.md", "Failure modes: not learning, wrong target",
         "the loss is flat or settles at a telling constant, or outputs are wrong though the loss falls",
         ("not_learning", "wrong_target")),
    Page("ml-debug", "modes-generalization.md", "Failure modes: training is fine, evaluation is not",
         "training metrics are good and validation is bad, frozen or contradictory", ("overfit", "batchnorm_gap")),
    Page("ml-debug", "modes-collapse.md", *_COLLAPSE),
    Page("ml-debug", "modes-crash.md", *_CRASH),
    Page("ml-debug", "modes-memory-and-speed.md", *_MEMORY),
    Page("ml-debug", "modes-distributed.md", *_RANKS),
    Page("ml-debug", "modes-jax.md", *_JAX),
    Page("pytorch-debugging", "modes-crash.md", *_CRASH),
    Page("pytorch-debugging", "modes-numerics.md", *_NUMERICS),
    Page("pytorch-debugging", "modes-memory-and-speed.md", *_MEMORY),
    Page("jax-debugging", "modes-jax.md", *_JAX),
    Page("jax-debugging", "modes-numerics.md", *_NUMERICS),
    Page("distributed-debugging", "modes-distributed.md", *_RANKS),
    Page("research-debug", "modes-collapse.md", *_COLLAPSE),
)


def modes_document(page: Page, catalog: Mapping[str, FailureMode], rules: Mapping[str, RuleModule]) -> str:
    """One reference page: each mode of its families with cause, evidence, checks, fixes and look-alikes."""
    modes = [m for f in page.families for m in catalog.values() if m.family == f]
    contents = "\n".join(f"- `{m.id}`: {m.title}" for m in modes)
    blocks = "\n\n".join("\n".join(_mode(m, rules)) for m in modes)
    return f"{_head(page.title, page.read_when)}{_MODES_PROSE}\n\n## Contents\n\n{contents}\n\n{blocks}\n"


_MODES_PROSE = ("A long page: search for the id of the mode instead of reading it from the top. Each entry is a "
                "hypothesis, not a verdict: confirm it and rule out its look-alikes first. Numbers in brackets are "
                "log-odds that a finding adds or takes; `explain RULE` shows how a finding is made.")


def _head(title: str, read_when: str) -> str:
    return f"# {title}\n\n{READ_WHEN}{read_when}.\n\n{NOTICE}\n\n"


def _mode(mode: FailureMode, rules: Mapping[str, RuleModule]) -> Iterator[str]:
    yield f"## `{mode.id}`: {mode.title}\n"
    yield f"Severity {mode.severity.value}; seen as {', '.join(mode.symptoms)}.\n"
    yield f"- **Cause:** {_sentence(mode.claim)}"
    yield f"- **Why:** {_sentence(mode.mechanism)}"
    yield f"- **Speaks for it:** {_evidence(mode.speaks_for, rules)}"
    if any(e.rule in rules for e in mode.speaks_against):
        yield f"- **Speaks against it:** {_evidence(mode.speaks_against, rules)}"
    yield f"- **Confirm:** {_steps(mode.confirm)}"
    yield f"- **Rule out:** {_steps(mode.rule_out)}"
    yield f"- **Fix A (targeted):** {_plan(mode.targeted)}"
    yield f"- **Fix B (broader):** {_sentence(mode.broader.summary)} {_sentence(mode.broader.change)}"
    forms = [f"{v.claim} ({', '.join(v.rules)}): {v.targeted.summary}" for v in mode.variants if v.claim and v.targeted]
    if forms:
        yield f"- **Other forms, each with its fix:** {_list(forms)}"
    yield f"- **The fix changes:** {_list(mode.will_change)}"
    yield f"- **It does not fix:** {_list(mode.will_not_fix)}"
    if mode.look_alikes:
        yield f"- **Looks alike:** {_list(f'`{x.mode}` ({x.tell})' for x in mode.look_alikes)}"


def _sentence(text: str) -> str:
    return without_values(text).rstrip(".") + "."


def _list(items: Iterable[str]) -> str:
    return "; ".join(without_values(i).rstrip(".;") for i in items) + "."


def _evidence(entries: Sequence[Speaks], rules: Mapping[str, RuleModule]) -> str:
    strongest: dict[str, Speaks] = {}
    for entry in sorted(entries, key=lambda e: (*ROLES, *COUNTER_ROLES).index(e.role)):
        strongest.setdefault(entry.rule, entry)
    shown = [e for e in strongest.values() if e.rule in rules][:MOST_EVIDENCE]
    if not shown:
        return "nothing that the instruments see in artifacts alone."
    return _list(f"{e.rule} {rules[e.rule].rule.title}{_remark(e)} ({e.role})" for e in shown)


def _remark(entry: Speaks) -> str:
    where = ", ".join(_condition(c) for c in entry.when)
    said = entry.note or (f"where {where}" if where else "")
    return f", {said}" if said else ""


def _steps(steps: Iterable[Step]) -> str:
    return "; ".join(_step(s) for s in steps) + "."


def _step(step: Step) -> str:
    command = f" (`{step.command}`)" if step.command else ""
    expect = f", expect: {without_values(step.expect).rstrip('.')}" if step.expect else ""
    return f"{without_values(step.do).rstrip('.')}{command}{expect}"


def _plan(plan: FixPlan) -> str:
    return (f"{_sentence(plan.summary)} {_sentence(plan.change)} Moves: {_sentence(plan.metric)} Verify: "
            f"{_sentence(plan.verify)} Otherwise: {_sentence(plan.otherwise)}")


def index_document(catalog: Mapping[str, FailureMode]) -> str:
    """The index of all failure modes by symptom, with the page that each is on."""
    pages = {f: p.file for p in reversed(PAGES) if p.skill == SCRIPT_HOME for f in p.families}
    parts = [_head("Failure modes by symptom", "you have a symptom and need the list of candidate causes"),
             "Take the symptom, form three to five hypotheses from its list, then open the page for evidence, checks "
             "and fixes. The likelier modes come first. `explain ID` prints one page.\n"]
    for symptom in sorted({s for m in catalog.values() for s in m.symptoms}):
        among = sorted((m for m in catalog.values() if symptom in m.symptoms), key=lambda m: (m.effect, m.id))
        parts += [f"\n## {symptom}\n\n| mode | what it is | page |\n|---|---|---|\n"]
        parts += [f"| `{m.id}` | {m.title} | [{pages[m.family]}]({pages[m.family]}) |\n" for m in among]
    return "".join(parts)


def thresholds_document(rules: Mapping[str, RuleModule]) -> str:
    """Every number that a rule compares with, its unit and its source."""
    rows = [f"| {m.rule.id} {m.rule.title} | {name.replace('_', ' ')} | {_number(t.value)} | {t.unit} | {t.source} |"
            for m in rules.values() for name, t in m.rule.thresholds.items()]
    return (_head("Thresholds", "you need the number at which a value counts as wrong, its unit or its source")
            + "Starting points with a source, not truths. Compare with the run's own healthy level first.\n\n"
            + "| rule | threshold | value | unit | source |\n|---|---|---|---|---|\n" + "\n".join(rows) + "\n")


def _number(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:g}"


def reference_table(folder: Path) -> str:
    """The table at the end of a SKILL.md, from the "Read when" line of every reference. Raises CatalogError."""
    rows = [f"| [references/{p.name}](references/{p.name}) | {read_when(p)} |\n"
            for p in sorted((folder / "references").glob("*.md"))]
    return TABLE_HEAD + "".join(rows)


def read_when(path: Path) -> str:
    """When a reference is to be read, in its own words. Raises CatalogError where it does not say."""
    for line in path.read_text(encoding="utf-8").splitlines()[:6]:
        if line.startswith(READ_WHEN):
            return line.removeprefix(READ_WHEN).rstrip(".")
    raise CatalogError(f"{path}: expected a line that starts with {READ_WHEN!r} below the title, found none")


def rendered_pages(skills: Path) -> dict[Path, str]:
    """Path and text of everything that is made from the catalog, the rules and the one script."""
    catalog, rules = load_catalog(), all_rules()
    home = skills / SCRIPT_HOME
    pages = {skills / p.skill / "references" / p.file: modes_document(p, catalog, rules) for p in PAGES}
    pages[home / "references" / "failure-modes.md"] = index_document(catalog)
    pages[home / "references" / "thresholds.md"] = thresholds_document(rules)
    for skill, files in SHARED.items():
        pages |= {skills / skill / "references" / f: (home / "references" / f).read_text("utf-8") for f in files}
    script = (home / SCRIPT).read_text(encoding="utf-8")
    others = (s for s in skills.iterdir() if s.name != SCRIPT_HOME and (s / "SKILL.md").is_file())
    return pages | {other / SCRIPT: script for other in others}


def rendered_skill(folder: Path) -> str:
    """The SKILL.md of a skill with its table of references renewed. Raises CatalogError where it has no table."""
    path = folder / "SKILL.md"
    body, table, _ = path.read_text(encoding="utf-8").partition(TABLE_HEAD)
    if not table:
        raise CatalogError(f"{path}: expected the table of references ({TABLE_HEAD.splitlines()[0]}) at its end")
    return body + reference_table(folder)


def write_skills(skills: Path) -> list[Path]:
    """Renders everything below the folder of skills; returns the files that changed."""
    changed = [path for path, text in rendered_pages(skills).items() if _write(path, text)]
    folders = sorted(p.parent for p in skills.glob("*/SKILL.md"))
    return changed + [f / "SKILL.md" for f in folders if _write(f / "SKILL.md", rendered_skill(f))]


def _write(path: Path, text: str) -> bool:
    if path.is_file() and path.read_text(encoding="utf-8") == text:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return True


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` ends it without a word
    for written in write_skills(Path(sys.argv[1] if len(sys.argv) > 1 else "skills")):
        print(written)
