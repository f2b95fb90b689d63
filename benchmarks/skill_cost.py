"""What the pack costs a conversation, in tokens of 3.6 characters.

    python benchmarks/skill_cost.py [ROOT]

Always there, also where nobody trains anything: the lines by which Claude Code lists skills and agents (name,
description, and an agent's tools; their form as its CLI 2.1 sends them). Where the MCP server is connected, besides:
the names of its tools and its instructions. Only when asked for: a SKILL.md, a reference page, a page of `explain`.
"""

from __future__ import annotations

import signal
import statistics
import sys
from pathlib import Path

import yaml

CHARACTERS_A_TOKEN = 3.6
"""Low for English prose with code in it, so that the count errs on the safe side."""
PLUGIN = "traindx"


def tokens(text: str) -> int:
    """Estimated tokens, rounded up."""
    return -int(-len(text) // CHARACTERS_A_TOKEN)


def frontmatter(path: Path) -> dict[str, str]:
    """The keys of a skill's or an agent's file. Raises ValueError for a file without."""
    parts = path.read_text(encoding="utf-8").split("\n---\n", 1)
    head = yaml.safe_load(parts[0].removeprefix("---\n")) if len(parts) == 2 else None
    if not isinstance(head, dict):
        raise ValueError(f"{path}: expected a frontmatter between two lines of ---, found none")
    return head


def listing(root: Path) -> list[str]:
    """The lines that a host shows in every conversation: skills, then agents with their tools."""
    skills = [frontmatter(p) for p in sorted(root.glob("skills/*/SKILL.md"))]
    agents = [frontmatter(p) for p in sorted(root.glob("agents/*.md"))]
    return ([f"- {PLUGIN}:{s['name']}: {' '.join(s['description'].split())}\n" for s in skills]
            + [f"- {PLUGIN}:{a['name']}: {a['description']} (Tools: {a['tools']})\n" for a in agents])


def _served() -> str:
    from traindx.mcp_server import INSTRUCTIONS
    from traindx.mcp_tools import PREFIXES, TOOLS

    return INSTRUCTIONS + "".join(f"{PREFIXES[1]}{name}\n" for name in TOOLS)


def _pages() -> list[int]:
    from traindx_tools.catalog.catalog import load_catalog
    from traindx_tools.catalog.page import mode_page

    return [tokens(mode_page(m)) for m in load_catalog().values()]


def main() -> None:
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[1]
    lines = listing(root)
    print(f"always: {tokens(''.join(lines))} tokens in {len(lines)} lines of skills and agents")
    print(f"with the MCP server connected: {tokens(_served())} more")
    for path in sorted(root.glob("skills/*/SKILL.md")):
        print(f"{path.parent.name}/SKILL.md: {tokens(path.read_text(encoding='utf-8'))}")
    sizes = {p: tokens(p.read_text(encoding="utf-8")) for p in root.glob("skills/*/references/*.md")}
    longest = max(sizes, key=lambda p: sizes[p])
    print(f"references: {len(sizes)} pages, median {statistics.median(sizes.values()):.0f}, longest {sizes[longest]} "
          f"({longest.relative_to(root)})")
    pages = _pages()
    print(f"explain MODE: {len(pages)} pages, median {statistics.median(pages):.0f}, longest {max(pages)}")
    files = [p for p in (root / "skills").rglob("*") if p.is_file() and "__pycache__" not in p.parts]
    print(f"`npx skills add` lands {len(files)} files, {sum(p.stat().st_size for p in files) / 1e6:.1f} MB")


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` ends it without a word
    main()
