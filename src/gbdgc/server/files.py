"""The page's files, read once at the start: no path from a request ever reaches the file system."""

from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

from fastapi import Request, Response

from gbdgc.counting.overlay import colour_bar

_KINDS = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".jpg": "image/jpeg",
    ".png": "image/png",
}


class PageFile(NamedTuple):
    """One file in memory, ready to be sent."""

    content: bytes
    kind: str
    tag: str

    def response(self, request: Request) -> Response:
        """Return the file, or 304 if the browser has it already."""
        headers = {"ETag": self.tag, "Cache-Control": "no-cache"}
        if request.headers.get("if-none-match") == self.tag:
            return Response(status_code=304, headers=headers)
        return Response(self.content, media_type=self.kind, headers=headers)


def page_files(first: str) -> dict[str, PageFile]:
    """Return everything under page/, by its address, and the ``first`` page at the root."""
    folder = Path(__file__).parent / "page"
    paths = [path for path in folder.rglob("*") if path.is_file() and not path.name.startswith((".", "_"))]
    found = {f"/page/{path.relative_to(folder).as_posix()}": _file(path.name, path.read_bytes()) for path in paths}
    bar = BytesIO()
    colour_bar().save(bar, "PNG")
    found["/page/bar.png"] = _file("bar.png", bar.getvalue())
    pages = {name: found.pop(f"/page/{name}") for name in ("index.html", "docs.html", "label.html")}
    return found | {"/": pages[first]} | ({"/docs": pages["docs.html"]} if first == "index.html" else {})


def _file(name: str, content: bytes) -> PageFile:
    return PageFile(content, _KINDS[Path(name).suffix], f'"{sha256(content).hexdigest()[:16]}"')
