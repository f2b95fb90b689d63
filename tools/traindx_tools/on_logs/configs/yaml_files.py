"""YAML without its traps: no tags beyond plain data, no merge or alias bombs, a bounded size."""

from __future__ import annotations

from typing import Any

from traindx_tools.errors import UnreadableInput

MOST_CHARACTERS = 1_000_000
MOST_MERGED_KEYS = 10_000
MOST_NESTED = 200


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

    return Bounded
