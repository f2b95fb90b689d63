"""Settings = base yaml + `--set section.key=value` overrides."""
import copy
import yaml


def parse_value(text):
    return yaml.safe_load(text)


def apply_overrides(tree, pairs):
    tree = copy.deepcopy(tree)
    for pair in pairs:
        path, value = pair.split("=", 1)
        node = tree
        *parents, leaf = path.strip().split(".")
        for name in parents:
            node = dict(node.setdefault(name, {}))
        node[leaf] = parse_value(value)
    return tree


def load(path, pairs=()):
    with open(path) as f:
        tree = yaml.safe_load(f)
    return apply_overrides(tree, pairs)
