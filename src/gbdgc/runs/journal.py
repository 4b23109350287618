"""A file that is appended to row by row and survives being cut off at any byte."""

import errno
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gbdgc.errors import InputError, as_input_error
from gbdgc.files import AnyPath, atomic_write, csv_line, csv_rows


class Journal:
    """Rows by name in a file: CSV with the given columns, or JSON lines without any.

    A row is appended in a single write. If a kill or a power cut leaves half a row, readers ignore it, and `recover`
    removes it before anything else is appended. The file need not exist yet; a missing value becomes an empty cell.
    """

    def __init__(self, path: AnyPath, columns: Sequence[str] | None = None) -> None:
        self.path = Path(path)
        self.columns = None if columns is None else list(columns)

    def rows(self) -> list[dict[str, Any]]:
        """Return the whole rows; the cells of a CSV file as text, under its own header."""
        return self._parse(self._whole(self._content()))

    def recover(self) -> list[dict[str, Any]]:
        """Return the whole rows and cut half a row off the file, so that it can be appended to."""
        content = self._content()
        whole = self._whole(content)
        rows = self._parse(whole)
        if self.columns is not None and rows and list(rows[0]) != self.columns:
            raise InputError(self.path, "its columns are not those of this run", "start a new run")
        if whole != content:
            with atomic_write(self.path) as file:
                file.write(whole)
        return rows

    def append(self, row: Mapping[str, Any], *, durable: bool = False) -> None:
        """Add a row; ``durable`` waits until it is on disk, for rows that a later file relies on."""
        written = as_input_error(OSError, self.path, "could not be written ({error})", "make room, then resume the run")
        with written, self.path.open("ab", buffering=0) as file:
            size = os.fstat(file.fileno()).st_size
            line = (b"" if size else self._header()) + self._line(row)
            if file.write(line) < len(line):  # a disk that got full within the row
                file.truncate(size)  # the next row would continue this one
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            if durable:
                os.fsync(file.fileno())

    def replace(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Write all rows anew, in one step."""
        with atomic_write(self.path) as file:
            file.write(self._header())
            file.writelines(self._line(row) for row in rows)

    def _content(self) -> bytes:
        with as_input_error(OSError, self.path, "cannot be read ({error})", "see what lies there"):
            return self.path.read_bytes() if self.path.exists() else b""

    def _whole(self, content: bytes) -> bytes:
        end = content.rfind(b"\n") + 1
        # A newline within quotes ends no row of CSV; in JSON there is none.
        while self.columns is not None and content.count(b'"', 0, end) % 2:
            end = content.rfind(b"\n", 0, end - 1) + 1
        return content[:end]

    def _parse(self, content: bytes) -> list[dict[str, Any]]:
        text = content.decode("utf-8", "surrogateescape")
        header, *rows = csv_rows(text) if self.columns and text else [[]]
        lines: Sequence[Any] = text.split("\n")[:-1] if self.columns is None else rows
        found: list[dict[str, Any]] = []
        for number, line in enumerate(lines, start=1 if self.columns is None else 2):
            reason = f"row {number} is damaged ({{error}})"
            with as_input_error((ValueError, RecursionError), self.path, reason, "fix it, or take that row out"):
                if self.columns is not None and len(line) != len(header):
                    raise ValueError(f"{len(line)} cells under {len(header)} columns")
                found.append(json.loads(line) if self.columns is None else dict(zip(header, line, strict=True)))
        return found

    def _header(self) -> bytes:
        return b"" if self.columns is None else self._line(dict(zip(self.columns, self.columns, strict=True)))

    def _line(self, row: Mapping[str, Any]) -> bytes:
        line = json.dumps(row) + "\n" if self.columns is None else csv_line(row.get(name) for name in self.columns)
        # File names need not be text: bytes that are not are written back as they were.
        return line.encode("utf-8", "surrogateescape")
