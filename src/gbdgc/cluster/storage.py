"""Files in local folders and behind URIs (s3://, gs://, hdfs://, file://), by pyarrow's file systems."""

from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from secrets import token_hex
from typing import Any, NamedTuple

from gbdgc.counting.sources import is_countable
from gbdgc.errors import InputError, as_input_error, install_advice
from gbdgc.files import atomic_write, natural_order

_OBJECT_STORES = frozenset({"s3", "gcs", "abfs"})  # where a file appears when it is complete, and not before


class Place(NamedTuple):
    """A path in a file system of pyarrow's."""

    system: Any
    path: str

    def __truediv__(self, name: str) -> "Place":
        return Place(self.system, f"{self.path.rstrip('/')}/{name}")

    def names(self) -> list[str]:
        """Return the names of the files in this folder; none where it does not exist."""
        from pyarrow.fs import FileSelector

        return [each.base_name for each in self.system.get_file_info(FileSelector(self.path, allow_not_found=True))]

    def read(self) -> bytes:
        """Return the content of a file."""
        with self.system.open_input_stream(self.path) as file:
            return bytes(file.read())

    def write(self, content: bytes) -> None:
        """Write a file that others see complete or not at all."""
        if self.system.type_name == "local":
            with atomic_write(self.path) as file:
                file.write(content)
            return
        stored_at_once = self.system.type_name in _OBJECT_STORES
        folder, _, name = self.path.rpartition("/")
        path = self.path if stored_at_once else f"{folder}/.{name}.{token_hex(6)}.part"
        if not stored_at_once:
            self.system.create_dir(folder)
        with self.system.open_output_stream(path) as file:
            file.write(content)
        if not stored_at_once:
            self.system.move(path, self.path)


def locate(address: str) -> Place:
    """Return where a local path or a URI leads."""
    with as_input_error(ImportError, "", "a cluster needs pyarrow, which is not installed", install_advice("ray")):
        from pyarrow.fs import FileSystem, LocalFileSystem
    if "://" not in address:
        return Place(LocalFileSystem(), str(Path(address).absolute()))
    with as_input_error((OSError, ValueError), address, "not an address of files ({error})"):
        return Place(*FileSystem.from_uri(address))


def find_files(address: str, *, recursive: bool = False) -> Iterator[str]:
    """Yield the address of each picture and video behind a URI, in natural order."""
    from pyarrow.fs import FileSelector, FileType

    place = locate(address)
    base, mark, query = address.partition("?")
    with as_input_error(OSError, base, "cannot be read ({error})"):
        found = place.system.get_file_info(place.path)
        if found.type == FileType.File:
            yield address
            return
        if found.type == FileType.NotFound:
            raise InputError(base, "no such file or folder")
        below = place.system.get_file_info(FileSelector(place.path, recursive=recursive))
    files = [each for each in below if each.type == FileType.File and not each.base_name.startswith(".")]
    paths = [each.path for each in files if is_countable(PurePosixPath(each.path))]
    if not paths:
        raise InputError(base, "no pictures or videos in it", "" if recursive else "look into its folders (recursive)")
    for path in sorted(paths, key=natural_order):
        yield f"{base.rstrip('/')}/{path.removeprefix(place.path).lstrip('/')}{mark}{query}"
