"""CVAT, exported as "CVAT for images 1.1": annotations.xml, with the pictures beside it or in images/.

Each point of a ``points`` shape and each ``box`` is a person. An id is the picture's name, a subset is the split.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from xml.etree.ElementTree import Element

from defusedxml import DefusedXmlException
from defusedxml.ElementTree import ParseError, parse

from gbdgc.data.formats.entry import Entry, find_picture, is_file, label_file_opening, people_among
from gbdgc.errors import InputError, as_input_error, noted_in

TITLE = "CVAT"

_OTHER_SHAPES = frozenset({"polygon", "polyline", "ellipse", "cuboid", "mask", "skeleton"})


def looks_like(path: Path) -> str | None:
    """Recognise an XML file whose root is <annotations>."""
    file = path / "annotations.xml" if path.is_dir() else path
    if file.suffix == ".xml" and "<annotations>" in label_file_opening(file):
        return f"{file.name} with <annotations>"
    return None


def read(path: Path, problems: list[str]) -> Iterator[Entry]:
    """Yield the pictures of the file."""
    file = path / "annotations.xml" if path.is_dir() else path
    if not is_file(file):
        raise InputError(file, "no such file")
    unsafe, unread = "not XML that can be read safely ({error})", "cannot be read ({error})"
    with (
        as_input_error((ParseError, DefusedXmlException), file, unsafe, "export it again"),
        as_input_error(OSError, file, unread),
    ):
        root = parse(str(file)).getroot()
    if root is None or root.tag != "annotations":
        raise InputError(file, "its root is not <annotations>")
    if root.find("track") is not None:
        raise InputError(file, "this is an export for video", "export it as 'CVAT for images 1.1'")
    images = root.findall("image")
    people = people_among({shape.get("label", "") for image in images for shape in image if shape.tag != "tag"}, file)
    for image in images:
        name, subset = image.get("name", ""), image.get("subset")
        with noted_in(problems), as_input_error(ValueError, file, f"the image {name!r} has no width and height"):
            picture = find_picture(name, file.parent, (".", "images", f"images/{subset}" if subset else "images"), file)
            size = (int(image.get("width", "")), int(image.get("height", "")))
            yield Entry(name, picture, partial(_marks, image, people, file), size, subset.lower() if subset else None)


def _marks(image: Element, people: frozenset[str], file: Path) -> list[list[float]]:
    where = f"{file}, image {image.get('name')!r}"
    marks = []
    for shape in image:
        if shape.get("label") not in people:
            continue
        if shape.tag in _OTHER_SHAPES:
            raise InputError(where, f"a {shape.tag} marks a person", "only points and boxes are read")
        with as_input_error(ValueError, where, f"the coordinates of a {shape.tag} shape are not numbers"):
            if shape.tag == "points":
                pairs = (pair.split(",") for pair in shape.get("points", "").split(";") if pair)
                marks += [[float(x), float(y), 0, 0] for x, y in pairs]
            elif shape.tag == "box":
                left, top, right, bottom = (float(shape.get(side, "")) for side in ("xtl", "ytl", "xbr", "ybr"))
                marks.append([left, top, right - left, bottom - top])
    return marks
