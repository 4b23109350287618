"""JHU-CROWD++: train/images/0001.jpg, train/gt/0001.txt, train/image_labels.txt, and the same in val and test.

A line of gt is ``x y w h o b``: the middle of a head, its size, occlusion and blur. A line of image_labels.txt is
``filename,total-count,scene-type,weather-condition,distractor``; scene, weather and distractor become tags. The path
may be the folder of all, or of one split. An id is "train/0001".
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from gbdgc.data.formats.entry import Entry, pictures_in, read_text
from gbdgc.errors import InputError, as_input_error

TITLE = "JHU-CROWD++"

_SPLITS = ("train", "val", "test")
_WEATHER = {"0": "clear", "1": "fog", "2": "rain", "3": "snow"}
_DISTRACTOR = {"0": "no", "1": "yes"}


def looks_like(path: Path) -> str | None:
    """Recognise images/ beside gt/ in train, val or test."""
    folders = _folders(path)
    return f"{folders[0].name}/images and {folders[0].name}/gt" if folders else None


def read(path: Path, problems: list[str]) -> Iterator[Entry]:
    """Yield the pictures of every split."""
    folders = _folders(path)
    if not folders:
        raise InputError(path, "no train, val or test folder with images/ and gt/ in it")
    for folder in folders:
        split = folder.absolute().name
        tags = _read_tags(folder / "image_labels.txt", problems)
        for image in pictures_in(folder / "images"):
            marks = partial(_read_heads, folder / "gt" / f"{image.stem}.txt")
            yield Entry(f"{split}/{image.stem}", image, marks, split=split, tags=tags.get(image.stem, {}))


def _folders(path: Path) -> list[Path]:
    candidates = [path, *(path / split for split in _SPLITS)]
    return [folder for folder in candidates if (folder / "images").is_dir() and (folder / "gt").is_dir()]


def _read_heads(path: Path) -> list[list[float]]:
    heads = []
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        if columns := line.split():
            reason = f"{line!r} does not begin with two numbers x y"
            with as_input_error(ValueError, f"{path}, line {number}", reason):
                x, y = columns[:2]
                heads.append([float(x), float(y)])
    return heads


def _read_tags(path: Path, problems: list[str]) -> dict[str, dict[str, str]]:
    if not path.is_file():
        return {}
    tags = {}
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        if line.strip():
            columns = [column.strip() for column in line.split(",")]
            if len(columns) != 5:
                problems.append(f"{path}, line {number}: {len(columns)} columns where there should be five")
                continue
            name, _, scene, weather, distractor = columns
            weather, distractor = _WEATHER.get(weather, weather), _DISTRACTOR.get(distractor, distractor)
            values = {"scene": scene, "weather": weather, "distractor": distractor}
            tags[Path(name).stem] = {key: value for key, value in values.items() if value}
    return tags
