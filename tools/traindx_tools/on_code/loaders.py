"""Data loaders as they are written."""

from __future__ import annotations

from traindx_tools.on_code.project import Project
from traindx_tools.on_code.syntax import argument, syntax


def has_workers(project: Project) -> bool:
    """Whether any loader of the project is made with worker processes."""
    for file in project.files:
        if "num_workers" not in file.text:
            continue
        code = syntax(file)
        for call in code.calls("DataLoader"):
            workers = argument(call, 99, "num_workers")
            if workers is not None and (code.number(workers) or 0) > 0:
                return True
    return False
