"""Renders the skills' reference pages from the catalog, so that prose and engine never disagree.

`make skills` writes them; a test compares. A page of failure modes has one line a mode: `explain ID` prints the rest.
Besides, each skill gets an index of its references (from the "Read when" line of each), a copy of the one script, and
of the references and specialists' prompts that it shares: nothing below a skill is a link.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from traindx_tools.catalog.archive import write_archive
from traindx_tools.catalog.catalog import FailureMode, load_catalog
from traindx_tools.errors import CatalogError

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

BRIEFED = ("data-flow-tracer", "failure-mode-researcher", "jax-logic-auditor", "paper-alignment-auditor",
           "silent-bug-detector", "torch-logic-auditor")
"""Specialists whose prompts ml-debug holds a copy of: a host that installs skills alone installs no agents."""

NOTICE = "<!-- Rendered by `make skills` from the catalog. Edit that. -->"
INDEX = "index.md"
"""The reference of a skill that says of all others when to read them."""
READ_WHEN = "Read when: "


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


def modes_document(page: Page, catalog: Mapping[str, FailureMode]) -> str:
    """One reference page: each mode of its families in one line."""
    lines = [f"- `{m.id}`: {m.title} ({', '.join(m.symptoms)})" for f in page.families for m in catalog.values()
             if m.family == f]
    return f"{_head(page.title, page.read_when)}{_MODES_PROSE}\n\n" + "\n".join(lines) + "\n"


_MODES_PROSE = ("Each line is a hypothesis, not a verdict. `explain ID` prints its page: mechanism, evidence for and "
                "against, how to confirm it and rule it out, look-alikes, fixes.")


def _head(title: str, read_when: str) -> str:
    return f"# {title}\n\n{READ_WHEN}{read_when}.\n\n{NOTICE}\n\n"


def index_document(catalog: Mapping[str, FailureMode]) -> str:
    """The ids of all failure modes by symptom, with the page that names each."""
    parts = [_head("Failure modes by symptom", "you have a symptom and need the list of candidate causes"),
             "Form three to five hypotheses; `explain ID` prints a page.\n"]
    for symptom in sorted({s for m in catalog.values() for s in m.symptoms}):
        parts.append(f"\n## {symptom}\n\n")
        among = sorted((m for m in catalog.values() if symptom in m.symptoms), key=lambda m: (m.effect, m.id))
        for page in (p for p in PAGES if p.skill == SCRIPT_HOME):
            ids = [f"`{m.id}`" for m in among if m.family in page.families]
            label = page.file.removeprefix("modes-").removesuffix(".md")
            parts += [f"- [{label}]({page.file}): {', '.join(ids)}\n"] if ids else []
    return "".join(parts)


def references_document(texts: Mapping[str, str]) -> str:
    """The index of a skill's references, from the "Read when" line of each. Raises CatalogError."""
    rows = [f"| [{name}]({name}) | {read_when(texts[name], name)} |\n" for name in sorted(texts) if name != INDEX]
    return (_head("References", "you want to know which page to read")
            + "| file | read when |\n|---|---|\n" + "".join(rows))


def read_when(text: str, name: str) -> str:
    """When a reference is to be read, in its own words. Raises CatalogError where it does not say."""
    for line in text.splitlines()[:6]:
        if line.startswith(READ_WHEN):
            return line.removeprefix(READ_WHEN).rstrip(".")
    raise CatalogError(f"{name}: expected a line that starts with {READ_WHEN!r} below the title, found none")


def rendered_pages(skills: Path) -> dict[Path, str]:
    """Path and text of everything that is made from the catalog, the one script and what skills share."""
    pages = {**_of_catalog(skills), **_copies(skills)}
    for skill in (p.parent for p in skills.glob("*/SKILL.md")):
        folder = skill / "references"
        texts = {p.name: p.read_text("utf-8") for p in folder.glob("*.md")}
        texts |= {p.name: text for p, text in pages.items() if p.parent == folder}
        pages[folder / INDEX] = references_document(texts)
    return pages


def _of_catalog(skills: Path) -> dict[Path, str]:
    catalog = load_catalog()
    pages = {skills / p.skill / "references" / p.file: modes_document(p, catalog) for p in PAGES}
    return pages | {skills / SCRIPT_HOME / "references" / "failure-modes.md": index_document(catalog)}


def _copies(skills: Path) -> dict[Path, str]:
    """What a skill holds a copy of, since each may be installed alone."""
    home, agents = skills / SCRIPT_HOME, skills.parent / "agents"
    found = {skills / skill / "references" / f: (home / "references" / f).read_text("utf-8")
             for skill, files in SHARED.items() for f in files}
    found |= {home / "agents" / f"{name}.md": (agents / f"{name}.md").read_text("utf-8") for name in BRIEFED}
    script = (home / SCRIPT).read_text(encoding="utf-8")
    others = (s for s in skills.iterdir() if s.name != SCRIPT_HOME and (s / "SKILL.md").is_file())
    return found | {other / SCRIPT: script for other in others}


def write_skills(skills: Path) -> Iterator[Path]:
    """Renders everything below the folder of skills; yields the files that changed."""
    yield from (path for path, text in rendered_pages(skills).items() if _write(path, text))
    yield from write_archive(skills)


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
