"""SQLite databases of others, read with the standard library: nothing is written, nothing in them is executed.

A database that is still written keeps its newest rows in a file of its own (`-wal`), and SQLite writes beside a
database that it reads so: such a pair is copied first.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

MAGIC = b"SQLite format 3\x00"
MAX_COPIED = 2 * 2**30
"""Bytes of a database that is copied because it is still written."""
SECONDS = 60.0
"""Seconds that the reading of one database may take."""
_ALLOWED = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ})
_INSTRUCTIONS = 100_000
"""Steps of SQLite's machine between two looks at the clock."""


class Refused(Exception):
    """The database cannot be read, or is not what it is taken for."""


@contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection that can only select. Raises OSError, Refused, sqlite3.Error."""
    log = path.with_name(f"{path.name}-wal")
    if not log.is_file() or log.is_symlink() or not log.stat().st_size:
        with closing(_connected(path, "immutable=1")) as connection:
            yield connection
        return
    if path.stat().st_size + log.stat().st_size > MAX_COPIED:
        raise Refused("it is still being written and too large to be copied first")
    with ExitStack() as stack:
        try:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="traindx-sqlite-"))
            copied = Path(folder) / "copy.db"
            shutil.copyfile(path, copied)
            shutil.copyfile(log, copied.with_name("copy.db-wal"))
        except OSError as failed:
            raise Refused(f"it is still being written, and could not be copied to be read ({failed.strerror}): free "
                          "room, or name another folder for temporary files with TMPDIR") from failed
        with closing(_connected(copied, "mode=rw")) as connection:
            yield connection


def _connected(path: Path, how: str) -> sqlite3.Connection:
    mode = how if how.startswith("mode=") else f"mode=ro&{how}"
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?{mode}", uri=True)
    until = time.monotonic() + SECONDS
    connection.text_factory = lambda raw: raw.decode("utf-8", errors="replace")
    connection.execute("PRAGMA trusted_schema=OFF")
    connection.execute("PRAGMA cell_size_check=ON")
    connection.set_progress_handler(lambda: int(time.monotonic() > until), _INSTRUCTIONS)
    connection.set_authorizer(lambda action, *_: sqlite3.SQLITE_OK if action in _ALLOWED else sqlite3.SQLITE_DENY)
    return connection


def tables(connection: sqlite3.Connection) -> dict[str, frozenset[str]]:
    """The plain tables and their columns; views, virtual tables and tables with computed columns are left out.

    What a view or a computed column says is a program of whoever made the file.
    """
    found = {}
    for name, made in connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table' LIMIT 1000"):
        text = str(made).upper()
        if isinstance(name, str) and text.startswith("CREATE TABLE") and " AS (" not in text and '"' not in name:
            columns = connection.execute(f'SELECT * FROM "{name}" LIMIT 0').description
            found[name] = frozenset(column[0] for column in columns)
    return found
