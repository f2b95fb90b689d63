"""A project as rules see it: its sources, and what happens in them in order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from traindx_tools.finding import Location
from traindx_tools.on_code.answers import Keeps, kept
from traindx_tools.on_code.execute import Interpreter
from traindx_tools.on_code.nodes import listed
from traindx_tools.on_code.source import SourceFile
from traindx_tools.on_code.trace import Block, Event, Place, unique_events
from traindx_tools.on_code.unread import Unread
from traindx_tools.on_code.values import Instance, Klass, Site
from traindx_tools.program.moments import Spot


@dataclass(frozen=True, eq=False)
class Project(Keeps):
    """Sources that belong together, followed once."""

    files: tuple[SourceFile, ...]
    roots: tuple[Block, ...]
    """One trace for each file's top level and each function that nobody in the project calls."""
    classes: tuple[Klass, ...]
    instances: tuple[Instance, ...]
    fetched: Mapping[int, Block] = field(default_factory=dict)
    """What happens when one sample is fetched, by the identity of the data set."""
    failures: tuple[tuple[SourceFile, str], ...] = ()
    """Files that were followed in part only, and why."""
    lost: tuple[Unread, ...] = ()
    """What came out of files and was gone before anybody read it."""

    @classmethod
    def of(cls, files: Sequence[SourceFile]) -> Project:
        """Follow these sources."""
        interpreter = Interpreter(files)
        interpreter.run()
        made = tuple(i for group in interpreter.instances.values() for i in group)
        return cls(tuple(files), tuple(interpreter.roots), tuple(interpreter.classes), made, interpreter.fetched,
            tuple(interpreter.failures), tuple(interpreter.unread.sure))

    @cached_property
    def events(self) -> tuple[Event, ...]:
        """Every event once."""
        return tuple(unique_events(list(self.roots)))

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """Every block once, from the last root to the first, what comes last in a block first."""
        found: list[Block] = []
        seen: set[int] = set()
        stack: list[Block] = list(self.roots)
        while stack:
            block = stack.pop()
            if id(block) not in seen:
                seen.add(id(block))
                found.append(block)
                stack += [b for b in block.body if b.__class__ is Block]
        return tuple(found)

    def places(self, root: Block) -> tuple[Place, ...]:
        """Everything that happens in a trace, in order; walked once."""
        return root.places

    def roots_with(self, methods: Iterable[str]) -> Iterator[Block]:
        """The traces in which one of these methods is called."""
        wanted = frozenset(methods)
        yield from (r for r in self.roots if not wanted.isdisjoint(r.methods)) if wanted else ()

    @cached_property
    def by_method(self) -> dict[str, list[Event]]:
        """The calls by the last part of their name."""
        return listed((event.method, event) for event in self.events)

    def calls(self, *methods: str) -> Iterator[Event]:
        """Every call whose name ends in one of these, each once."""
        for method in methods:
            yield from (e for e in self.by_method.get(method, ()) if e.kind == "call")

    @cached_property
    def training_loops(self) -> tuple[TrainingLoop, ...]:
        """The outermost loops in which `backward` is called, each with all its events."""
        found: list[TrainingLoop] = []
        seen: set[int] = set()
        for root in self.roots:
            if "backward" not in root.methods and "manual_backward" not in root.methods:
                continue
            stack: list[tuple[Block, ...]] = [(root,)]
            while stack:
                path = stack.pop()
                block = path[-1]
                if not BACKWARD & block.methods or id(block) in seen or len(path) > 60:
                    continue
                seen.add(id(block))
                if block.kind == "loop":
                    found.append(TrainingLoop(root, path, block))
                    continue
                stack.extend((*path, item) for item in block.body if isinstance(item, Block))
        return tuple(found)

    def file(self, path: str) -> SourceFile | None:
        """The source with this path."""
        return self._by_path.get(path)

    def spot(self, site: Site) -> Spot:
        """The place where a value arose."""
        file = self.file(site.path)
        return Spot(site.path, site.line, None, file.quote(site.line) if file is not None else "")

    @cached_property
    def _by_path(self) -> dict[str, SourceFile]:
        return {f.path: f for f in reversed(self.files)}


BACKWARD = frozenset({"backward", "manual_backward"})


@dataclass(frozen=True, eq=False)
class TrainingLoop(Keeps):
    """An outermost loop that trains: its root, the blocks above it and itself."""

    root: Block
    path: tuple[Block, ...]
    block: Block

    @cached_property
    def places(self) -> tuple[Place, ...]:
        """Everything that happens inside, in order."""
        return self.block.places

    @kept
    def of(self, *methods: str) -> list[Place]:
        """The calls inside whose names end in one of these, in order."""
        wanted = frozenset(methods)
        return [p for p in self.places if p.event.method in wanted and p.event.kind == "call"]

    @kept
    def inside(self, block: Block, *methods: str) -> list[Place]:
        """Those of these calls that a block inside holds, in order."""
        return [p for p in self.of(*methods) if block in p.path]

    @cached_property
    def backwards(self) -> list[Place]:
        """The calls of backward inside."""
        return self.of("backward", "manual_backward")


def location(event: Event) -> Location:
    """The place of an event, with the line quoted."""
    return Location(file=event.file.path, line=event.line, end_line=getattr(event.node, "end_lineno", None),
        module=event.function.qualified if event.function else None, quote=event.file.quote(event.line))


def at(site: Site, project: Project) -> Location:
    """The place of a site, with the line quoted."""
    file = project.file(site.path)
    return Location(file=site.path, line=site.line, quote=file.quote(site.line) if file else None)
