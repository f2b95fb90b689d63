"""Draws the pictures of the documentation: the report, the review on a phone, the terminal at 80 and 120 columns.

    TRAINDX_CHROMIUM=$(.ci/chromium /tmp/chromium) python docs/render_screenshots.py [FOLDER]

Run it after a change of templates or of what the terminal shows, and look at each picture.
"""

from __future__ import annotations

import base64
import html
import os
import re
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "orchestrator" / "support"))
EXAMPLE = "examples/numpy-lr"
FILES = {"report": "scratch/debug/diagnose-TIME/report.html"}
"""As the command names them, without the time of the day on which the pictures were drawn."""
COLOURS = {"1": "font-weight:700", "2": "color:#8b949e", "31": "color:#ff7b72", "32": "color:#7ee787",
           "33": "color:#e3b341", "34": "color:#79c0ff", "36": "color:#76e3ea", "90": "color:#8b949e",
           "1;31": "color:#ff7b72;font-weight:700", "1;32": "color:#7ee787;font-weight:700"}
_STYLED = re.compile(r"\x1b\[([\d;]*)m(.*?)\x1b\[0?m", re.DOTALL)

if TYPE_CHECKING:
    from chromium_here import Tab


def terminal(text: str, columns: int) -> str:
    """A page that shows text as a terminal of so many columns does."""
    body = _STYLED.sub(lambda m: f'<span style="{COLOURS.get(m[1], "")}">{m[2]}</span>', html.escape(text, quote=False))
    return ('<!doctype html><meta charset="utf-8"><body style="margin:0;background:#0d1117;color:#e6edf3">'
            f'<pre style="margin:0;padding:16px;width:{columns}ch;font:14px/1.4 ui-monospace,Menlo,Consolas,monospace">'
            f"{body}</pre>")


def picture(page: Tab, out: Path, selector: str = "html", height: int | None = None) -> Path:
    """A PNG of an element, cut to a height."""
    page.evaluate("document.documentElement.style.scrollBehavior = 'auto'; 1")
    box: dict[str, Any] = page.evaluate(
        f"(() => {{ const b = document.querySelector({selector!r}).getBoundingClientRect();"
        "return {x: b.x + scrollX, y: b.y + scrollY, width: b.width, height: b.height, scale: 1}; })()")
    box["height"] = min(box["height"], height or box["height"])
    made = page.call("Page.captureScreenshot", format="png", clip=box, captureBeyondViewport=True)
    out.write_bytes(base64.b64decode(made["data"]))
    return out


def elsewhere(page: Tab, folder: Path) -> None:
    """The page with a folder of this machine named as one of somebody's: it belongs in no picture."""
    page.evaluate(f"""(() => {{
        const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
        for (let n; (n = walk.nextNode());) n.data = n.data.replaceAll({str(folder)!r}, "/home/ana");
        return 1; }})()""")


def draw(folder: Path, say: Callable[[str], None] = print) -> list[Path]:
    """All pictures, below the folder."""
    from chromium_here import tab

    from traindx import run_debug_session_sync
    from traindx.diagnose import diagnose
    from traindx.page import OPTION
    from traindx.review import Server, review_page
    from traindx.session import decide, read_result

    folder.mkdir(parents=True, exist_ok=True)
    made: list[Path] = []
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        os.chdir(ROOT)  # paths are shown as they are typed here
        report = diagnose([EXAMPLE])
        written = report.write(scratch / "report")
        with tab(scratch / "wide", width=1280, height=900) as page:
            for columns in (80, 120):
                shown = scratch / f"{columns}.html"
                command = f"$ traindx diagnose {EXAMPLE}\n"
                text = report.terminal(FILES, colour=True, width=columns, more=OPTION)
                shown.write_text(terminal(command + text, columns))
                page.open(shown.as_uri())
                made.append(picture(page, folder / f"terminal-{columns}.png", "pre"))
            page.open(Path(written["report"]).as_uri())
            made.append(picture(page, folder / "report.png", "html", 1500))
        work = Path(shutil.copytree(EXAMPLE, scratch / "numpy-lr"))
        waiting = run_debug_session_sync("loss is NaN", work)
        server = Server(lambda: read_result(waiting.folder), lambda d: decide(waiting.folder, d), review_page)
        threading.Thread(target=server.serve, daemon=True).start()
        with tab(scratch / "phone", width=390, height=844) as page:
            page.open(server.address)
            elsewhere(page, scratch.resolve())
            made.append(picture(page, folder / "review-phone.png", "#decide"))
            page.dark()
            made.append(picture(page, folder / "review-phone-dark.png", "html", 844))
    for path in made:
        say(f"{path} ({path.stat().st_size / 1024:.0f} KB)")
    return made


if __name__ == "__main__":
    draw(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "pictures")
