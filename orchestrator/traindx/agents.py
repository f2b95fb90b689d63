"""The specialists' prompts: one Markdown file each in `agents/`, for Claude Code and the orchestrator alike.

A file has a frontmatter, the same eight sections in the same order, and in the last one a JSON example from which the
schema of the answer is made, so that prompt and schema cannot differ. Claude Code reads `tools` and `disallowedTools`,
and lists `tools` in every conversation, so our server is named there once, for all that it offers. The orchestrator
reads `instruments` and offers these alone.
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

MOST_DESCRIBED = 90
MOST_TOKENS = 1_500
CHARACTERS_A_TOKEN = 3.6
"""Conservative: English prose has over 4 characters a token, prose full of identifiers about 3.6."""

BUILT_IN = frozenset({"Read", "Grep", "Glob"})
"""Claude Code's own tools that a specialist may have. None of them writes or runs anything."""
SERVER = PREFIXES[1].rstrip("_")
"""All tools of our server inside the plugin, as Claude Code's frontmatter names a server."""
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
    """What Claude Code gives it: `Read`, `mcp__plugin_traindx_traindx` for our server."""
    denied: tuple[str, ...]
    """What Claude Code takes from that again, by full name."""
    instruments: tuple[str, ...]
    """The names of our own tools that the orchestrator offers it, without a server's prefix."""
    prompt: str

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
    """Frontmatter and prompt of a file. Raises AgentError where it has no frontmatter with just these keys."""
    try:
        found = _FRONTMATTER.match(path.read_text(encoding="utf-8"))
        head = yaml.safe_load(found[1]) if found else None
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise AgentError(f"{path}: cannot be read: {error}") from error
    keys = {"name", "description", "tools", "disallowedTools", "instruments"}
    if found is None or not isinstance(head, dict) or set(head) != keys or not all(isinstance(head[k], str)
                                                                                  for k in keys):
        raise AgentError(f"{path}: it must begin with a frontmatter of {', '.join(sorted(keys))}, each a text")
    tools, denied, instruments = (tuple(t.strip() for t in head[k].split(","))
                                  for k in ("tools", "disallowedTools", "instruments"))
    return Agent(head["name"], head["description"], tools, denied, instruments, found[2].strip())


def problems(agent: Agent) -> list[str]:
    """All that is wrong with an agent; empty where nothing is."""
    wrong = [said for holds, said in (
        (_NAME.fullmatch(agent.name), f"the name {agent.name!r} is not in lower case with hyphens"),
        (20 <= len(agent.description) <= MOST_DESCRIBED,
         f"the description has not 20 to {MOST_DESCRIBED} characters: it is in every conversation"),
        (tuple(_HEADING.findall(agent.prompt)) == SECTIONS, f"the sections are not {', '.join(SECTIONS)}"),
        (all(text for text in agent.sections.values()), "a section is empty"),
        (agent.tokens < MOST_TOKENS, f"the prompt has about {agent.tokens} tokens: at most {MOST_TOKENS} are allowed"),
    ) if not holds]
    wrong += [f"the tool {t!r} is not read-only, or not known" for t in agent.tools if t not in _allowed(agent.name)]
    wrong += _wrong_instruments(agent)
    return wrong if wrong else _example_problems(agent)


def _allowed(name: str) -> frozenset[str]:
    return BUILT_IN | {SERVER} | (WEB if name in ON_THE_WEB else frozenset())


def _wrong_instruments(agent: Agent) -> list[str]:
    """Instruments read, or run where nothing can change the project; the prompt names no other; of the server's tools,
    what is more than that is denied."""
    unknown = [t for t in agent.instruments if t not in TOOLS or not (TOOLS[t].read_only or TOOLS[t].protected)]
    named = [t for t in TOOLS if f"`{t}`" in agent.prompt and t not in agent.instruments]
    more = [PREFIXES[1] + t.name for t in TOOLS.values()
            if not (t.read_only or t.protected) or (t.executes and t.name not in agent.instruments)]
    return ([f"the instrument {t!r} is not read-only, or not known" for t in unknown]
            + [f"the prompt calls {t}, which is not among its instruments" for t in named]
            + [f"{t} is not among its disallowedTools" for t in more if t not in agent.denied])


def _example_problems(agent: Agent) -> list[str]:
    try:
        _ = agent.output_schema
    except ValueError as error:
        return [f"the example of the output is no JSON that a schema can be made of: {error}"]
    return []
