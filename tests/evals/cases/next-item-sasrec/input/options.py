from pathlib import Path

import yaml


class Options:
    """Dotted access to a YAML file with fall-backs."""

    def __init__(self, path):
        self.tree = yaml.safe_load(Path(path).read_text())

    def get(self, dotted, default=None):
        node = self.tree
        for part in dotted.split("."):
            if not isinstance(node, dict) or part not in node:
                return default
            node = node[part]
        return node
