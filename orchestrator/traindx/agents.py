"""The specialists' prompts: one Markdown file each in `agents/`, for Claude Code and the orchestrator alike.

A file has a frontmatter (name, description, tools), the same eight sections in the same order, and in the last one a
JSON example from which the schema of the answer is made, so that prompt and schema cannot differ.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from traindx.answer_schema import schema_from_example
from traindx.mcp_tools import PREFIXES, TOOLS
from traindx.pack import pack_folder
from traindx_tools.errors import TraindxError

SECTIONS = ("Question", "You are given", "Method", "Evidence", "Never", "Hand over", "Not found", "Output")
"""The headings of a prompt, in this order and no others."""

LEAD = "ml-debugger-specialist"
SPECIALISTS = ("data-flow-tracer", "torch-logic-auditor", "jax-logic-auditor", "failure-mode-researcher",
               "paper-alignment-auditor", "silent-bug-detector")
"""Those who gather evidence before the gate."""
AFTER_APPROVAL = ("fix-author", "fix-reviewer")
ALL = (LEAD, *SPECIALISTS, *AFTER_APPROVAL)

MOST_TOKENS = 1_500
CHARACTERS_A_TOKEN = 3.6
"""Conservative: English prose has over 4 characters a token, prose full of identifiers about 3.6."""

BUILT_IN = frozenset({"Read", "Grep", "Glob"})
"""Claude Code's own tools that a specialist may have. None of them writes or runs anything."""
WEB = frozenset({"WebSearch", "WebFetch"})
ON_THE_WEB = frozenset({"failure-mode-researcher", "paper-alignment-auditor"})

_FRONTMATTER = re.compile(r"\A---\n(.*?)\n---\n(.*)\Z", re.DOTALL)
_HEADING = re.compile(r"^## (.+)$", re.MULTILINE)
_EXAMPLE = re.compile(r"```json\n(.*?)\n```", re.DOTALL)
_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


class AgentError(TraindxError):
    """A prompt's file is not as it must be."""


@dataclass(frozen=True)
class Agent:
    """One specialist."""

    name: str
    description: str
    tools: tuple[str, ...]
    """As the file lists them; `Read`, `mcp__traindx__explain`."""
    prompt: str

    @property
    def instruments(self) -> tuple[str, ...]:
        """The names of our own tools that it may call, without a server's prefix."""
        return tuple(t for t in TOOLS if PREFIXES[0] + t in self.tools)

    @cached_property
    def sections(self) -> Mapping[str, str]:
        """Heading to text."""
        parts = _HEADING.split(self.prompt)
        return {heading: text.strip() for heading, text in zip(parts[1::2], parts[2::2], strict=True)}

    @cached_property
    def example(self) -> dict[str, Any]:
        """The answer's form, as the prompt shows it."""
        found = _EXAMPLE.search(self.sections["Output"])
        example = json.loads(found[1]) if found else None
        if not isinstance(example, dict):
            raise ValueError("the section Output shows no JSON object")
        return example

    @property
    def output_schema(self) -> dict[str, Any]:
        """The JSON schema of the answer: every key required, no other allowed."""
        return schema_from_example(self.example)

    @property
    def tokens(self) -> int:
        """Estimated tokens of the prompt."""
        return estimate_tokens(self.prompt)


def estimate_tokens(text: str) -> int:
    """How many tokens a text has at most, without a tokenizer."""
    return math.ceil(len(text) / CHARACTERS_A_TOKEN)


def load_agents(folder: Path | None = None) -> dict[str, Agent]:
    """Every agent by name, checked. Raises AgentError that names the file and all that is wrong in it."""
    where = folder or pack_folder("agents")
    return {agent.name: agent for agent in (load_agent(p) for p in sorted(where.glob("*.md")))}


def load_agent(path: Path) -> Agent:
    """The agent in one file, checked. Raises AgentError."""
    agent = parse_agent(path)
    wrong = problems(agent)
    if agent.name != path.stem:
        wrong.append(f"it is called {agent.name!r}: the file must be called {agent.name}.md")
    if wrong:
        raise AgentError(f"{path}: {'; '.join(wrong)}")
    return agent


def parse_agent(path: Path) -> Agent:
    """Frontmatter and prompt of a file. Raises AgentError where it has no frontmatter with just the three keys."""
    try:
        found = _FRONTMATTER.match(path.read_text(encoding="utf-8"))
        head = yaml.safe_load(found[1]) if found else None
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise AgentError(f"{path}: cannot be read: {error}") from error
    keys = {"name", "description", "tools"}
    if found is None or not isinstance(head, dict) or set(head) != keys or not all(isinstance(head[k], str)
                                                                                  for k in keys):
        raise AgentError(f"{path}: it must begin with a frontmatter of name, description and tools, each a text")
    return Agent(head["name"], head["description"], tuple(t.strip() for t in head["tools"].split(",")),
                 found[2].strip())


def problems(agent: Agent) -> list[str]:
    """All that is wrong with an agent; empty where nothing is."""
    wrong = [said for holds, said in (
        (_NAME.fullmatch(agent.name), f"the name {agent.name!r} is not in lower case with hyphens"),
        (20 <= len(agent.description) <= 400, "the description has not 20 to 400 characters"),
        (tuple(_HEADING.findall(agent.prompt)) == SECTIONS, f"the sections are not {', '.join(SECTIONS)}"),
        (all(text for text in agent.sections.values()), "a section is empty"),
        (agent.tokens < MOST_TOKENS, f"the prompt has about {agent.tokens} tokens: at most {MOST_TOKENS} are allowed"),
    ) if not holds]
    wrong += [f"the tool {t!r} is not read-only, or not known" for t in agent.tools if t not in _allowed(agent.name)]
    wrong += _incomplete(agent)
    return wrong if wrong else _example_problems(agent)


def _allowed(name: str) -> frozenset[str]:
    instruments = frozenset(p + t.name for t in TOOLS.values() if t.read_only for p in PREFIXES)
    return BUILT_IN | instruments | (WEB if name in ON_THE_WEB else frozenset())


def _incomplete(agent: Agent) -> list[str]:
    """An instrument is listed under each name that a client may give it, and every one that the method names."""
    half = [t for t in TOOLS if len({p + t in agent.tools for p in PREFIXES}) > 1]
    named = [t for t in TOOLS if f"`{t}`" in agent.prompt and t not in agent.instruments]
    return ([f"{t} is not listed under each of its prefixes" for t in half]
            + [f"the prompt calls {t}, which is not among its tools" for t in named])


def _example_problems(agent: Agent) -> list[str]:
    try:
        _ = agent.output_schema
    except ValueError as error:
        return [f"the example of the output is no JSON that a schema can be made of: {error}"]
    return []
