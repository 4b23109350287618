from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gbdgc.data import Dataset, Sample, concatenate
from gbdgc.errors import InputError


def samples(*names, split=None):
    return [Sample(name, Path(f"{name}.jpg"), 64, 48, np.zeros((2, 2), np.float32), split) for name in names]


@pytest.fixture
def data():
    return Dataset(samples(*(f"s{number}" for number in range(20)), split="train"))


def test_samples_are_found_by_position_and_by_id(data):
    assert data[3] is data.by_id("s3")
    assert data[2:4].ids == ["s2", "s3"]
    with pytest.raises(InputError, match="no sample 'x' among the 20 of this data set"):
        data.by_id("x")


def test_an_id_that_stands_twice_is_named():
    with pytest.raises(InputError, match="these stand twice: a, c"):
        Dataset(samples("a", "b", "a", "c", "c"))


def test_a_split_by_seed_does_not_depend_on_the_order_of_the_samples(data):
    first, rest = data.split(0.75, seed=1)
    again, _ = Dataset(reversed(data.samples)).split(0.75, seed=1)
    other, _ = data.split(0.75, seed=2)
    assert (len(first), len(rest)) == (15, 5)
    assert set(first.ids).isdisjoint(rest.ids)
    assert set(first.ids) == set(again.ids) != set(other.ids)


@pytest.mark.parametrize("fraction", [0, 1, -0.5, 2])
def test_a_share_outside_of_zero_and_one_is_refused(data, fraction):
    with pytest.raises(InputError, match="lies between 0 and 1"):
        data.split(fraction)


def test_a_split_by_list_takes_those_and_the_rest(data):
    chosen, rest = data.split_by(["s7", "s2"])
    assert chosen.ids == ["s2", "s7"]
    assert len(rest) == 18
    with pytest.raises(InputError, match="1 ids are not in this data set, such as x"):
        data.split_by(["s1", "x"])


def test_splits_are_counted_chosen_and_renamed(data):
    mixed = Dataset([*data, *samples("loose")])
    assert mixed.split_sizes() == {"train": 20, None: 1}
    assert len(mixed.where("train")) == 20
    with pytest.raises(InputError, match="no sample has the split 'test'; there are: train, None"):
        mixed.where("test")


def test_the_labelled_ones_can_be_had_alone(data):
    assert len(Dataset([*data, replace(data[0], id="x", points=None)]).labelled) == 20


def test_data_sets_are_put_together_under_their_names(data):
    assert concatenate({"a": data[:1], "b": data[:1]}).ids == ["a/s0", "b/s0"]


def test_a_manifest_that_cannot_be_written_leaves_the_old_one(data, tmp_path):
    path = data[:2].save(tmp_path / "m.jsonl")
    before = path.read_bytes()
    bad = Dataset([replace(data[0], tags={"scene": object()})])
    with pytest.raises(TypeError):
        bad.save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_it_prints_its_splits_and_heads(data):
    mixed = Dataset([*data, replace(data[0], id="x", split=None, points=None)], format="csv")
    assert repr(mixed) == "Dataset(21 samples from csv; train: 20, no split: 1; 40 heads in 20 labelled)"
