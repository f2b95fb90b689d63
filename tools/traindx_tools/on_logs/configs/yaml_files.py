"""YAML without its traps: tags build nothing, no merge or alias bombs, a bounded size.

A program's own tags (`!new:torch.optim.Adam`, `!ref <lr>`, as SpeechBrain writes them) are read as the plain data that
stands behind them: what they would build or call is neither built nor called. Refused are tags that ask for Python
objects, since only an attack needs them in a configuration, and `!include`, whose values stand in another file.
"""

from __future__ import annotations

from typing import Any

from traindx_tools.errors import UnreadableInput

MOST_CHARACTERS = 1_000_000
MOST_MERGED_KEYS = 10_000
MOST_NESTED = 200
_ELSEWHERE = "include"


def load_yaml(path: str, text: str) -> Any:
    """The first document of a YAML text as plain data. Raises UnreadableInput for damage, tags and bombs."""
    import yaml

    if len(text) > MOST_CHARACTERS:
        raise UnreadableInput(f"{path}: {len(text):,} characters of YAML; at most {MOST_CHARACTERS:,} are read")
    loader = _loader_class(path)(text)
    try:
        return loader.get_data() if loader.check_data() else {}
    except yaml.constructor.ConstructorError as error:
        if error.problem and "tag" in error.problem:
            where = f" at line {error.problem_mark.line + 1}" if error.problem_mark else ""
            raise UnreadableInput(f"{path}: the YAML tag{where} asks to build an object ({error.problem}): refused. "
                                  "Remove the tag or give the values as plain YAML.") from None
        raise UnreadableInput(f"{path}: no valid YAML: {error.problem}") from None
    except (yaml.YAMLError, ValueError) as error:
        raise UnreadableInput(f"{path}: no valid YAML: {str(error)[:300]}") from None
    finally:
        loader.dispose()


def _loader_class(path: str) -> Any:
    import yaml

    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class Bounded(base):  # type: ignore[misc]
        """PyYAML's safe loader with a bound on nesting and on what merge keys may expand to."""

        _nested = 0

        def compose_node(self, parent: Any, index: Any) -> Any:
            self._nested += 1
            if self._nested > MOST_NESTED:
                raise UnreadableInput(f"{path}: YAML nested deeper than {MOST_NESTED} levels")
            try:
                return super().compose_node(parent, index)
            finally:
                self._nested -= 1

        def flatten_mapping(self, node: Any) -> None:
            super().flatten_mapping(node)
            if len(node.value) > MOST_MERGED_KEYS:
                raise UnreadableInput(f"{path}: YAML merge keys expand to more than {MOST_MERGED_KEYS:,} keys: refused")

    Bounded.add_multi_constructor("!", _plain_data)
    return Bounded


def _plain_data(loader: Any, tag: str, node: Any) -> Any:
    """What stands behind a program's own tag, whatever the tag would make of it."""
    import yaml

    if tag.startswith(_ELSEWHERE):
        raise yaml.constructor.ConstructorError(None, None, f"the tag '!{tag}' names another file", node.start_mark)
    if isinstance(node, yaml.MappingNode):
        return loader.construct_mapping(node, deep=True)
    if isinstance(node, yaml.SequenceNode):
        return loader.construct_sequence(node, deep=True)
    text = loader.construct_scalar(node)
    return text or None
