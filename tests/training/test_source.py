"""Which pictures of a source are trained on."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from gbdgc.config import Config
from gbdgc.data import Dataset, load_dataset
from gbdgc.errors import InputError
from gbdgc.training import train
from gbdgc.training.state import load_source


@pytest.fixture
def save_with_splits(tiny_source: Path, tmp_path: Path) -> Callable[..., Path]:
    """Write the tiny source again with the splits that are given, in turn."""

    def save(*splits: str | None) -> Path:
        samples = [replace(s, split=splits[n % len(splits)]) for n, s in enumerate(load_dataset(tiny_source))]
        return Dataset(samples).save(tmp_path / "manifest.jsonl")

    return save


def _size(config: Config) -> int:
    return sum(len(part) for part in load_source(config) if part is not None)


def test_data_without_splits_is_taken_whole(
    tiny_config: Callable[..., Config], save_with_splits: Callable[..., Path]
) -> None:
    assert _size(tiny_config(data__source=save_with_splits(None))) == 16


def test_of_data_with_splits_only_the_one_that_is_asked_for_is_taken(
    tiny_config: Callable[..., Config], save_with_splits: Callable[..., Path]
) -> None:
    path = save_with_splits("train", "train", "test", None)
    assert _size(tiny_config(data__source=path)) == 8
    assert _size(tiny_config(data__source=path, data__split="test")) == 4
    assert _size(tiny_config(data__source=path, data__split="all")) == 16


def test_a_split_that_is_not_there_is_refused(
    tiny_config: Callable[..., Config], save_with_splits: Callable[..., Path]
) -> None:
    path = save_with_splits(None)
    with pytest.raises(InputError, match="no sample has the split 'val'"):
        load_source(tiny_config(data__source=path, data__split="val"))


def test_what_is_wrong_in_another_part_stops_no_training(
    tiny_config: Callable[..., Config], save_with_splits: Callable[..., Path]
) -> None:
    path = save_with_splits("train", "test")
    lines = path.read_text().splitlines()

    def lose_picture(part: str) -> None:
        number = next(number for number, line in enumerate(lines) if json.loads(line).get("split") == part)
        broken = json.dumps(json.loads(lines[number]) | {"image": "gone.jpg"})
        path.write_text("\n".join([*lines[:number], broken, *lines[number + 1 :]]))

    lose_picture("test")
    assert _size(tiny_config(data__source=path)) == 8
    lose_picture("train")
    with pytest.raises(InputError, match=r"gone\.jpg"):
        load_source(tiny_config(data__source=path))


def test_the_sources_themselves_can_be_the_domains(
    tiny_config: Callable[..., Config], tiny_source: Path, tmp_path: Path
) -> None:
    twin = tmp_path / "twin.jsonl"
    Dataset(load_dataset(tiny_source)).save(twin)
    config = tiny_config(
        data__source=[str(tiny_source), str(twin)], discovery__partition="source", method__name="mixing"
    )
    domains = train(config, folder=tmp_path / "run").domains[-1]
    of_source = {id.split("/")[0]: domain for id, domain in domains.items()}
    assert len(set(of_source.values())) == 2
    assert all(domain == of_source[id.split("/")[0]] for id, domain in domains.items())
