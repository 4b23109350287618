from itertools import pairwise
from pathlib import Path

import numpy as np

from gbdgc.data import Dataset, Sample
from gbdgc.data.statistics import Bin, across_counts, histogram, summarise_splits, tag_counts


def sample(id: str, count: int | None, split: str | None = None, width: int = 640, **tags: str) -> Sample:
    points = None if count is None else np.zeros((count, 2), dtype=np.float32)
    return Sample(id, Path(id), width, 480, points, split, tags)


def test_each_split_is_summarised_and_all_together():
    data = Dataset(
        [sample("a", 10, "train"), sample("b", 30, "train", 1000), sample("c", 0, "test"), sample("d", None)]
    )
    summaries = summarise_splits(data)
    assert list(summaries) == ["train", "test", "no split", "all"]
    assert (summaries["train"].heads, summaries["train"].mean, summaries["train"].quantiles["median"]) == (40, 20, 20)
    assert summaries["train"].width == (640, 1000)
    assert (summaries["test"].empty, summaries["no split"].mean, summaries["no split"].quantiles) == (1, None, {})
    assert (summaries["all"].images, summaries["all"].labelled, summaries["all"].heads) == (4, 3, 40)


def test_one_split_is_not_summarised_twice():
    assert list(summarise_splits(Dataset([sample("a", 1, "train")]))) == ["train"]


def test_every_labelled_picture_is_in_one_bar_of_the_histogram():
    counts = [0, 1, 2, 9, 10, 99, 100, 5000, 5000]
    bars = histogram([sample(str(number), count) for number, count in enumerate([*counts, None])])
    assert sum(bar.images for bar in bars) == len(counts)
    assert bars[0] == Bin(0, 0, 1)
    assert bars[-1] == Bin(5000, 9999, 2)
    assert [bar.label for bar in bars[:3]] == ["0 heads", "1 head", "2 to 4 heads"]
    assert all(after.low == before.high + 1 for before, after in pairwise(bars))
    assert histogram([sample("a", None)]) == []


def test_the_pictures_to_show_run_from_the_emptiest_to_the_fullest():
    samples = [sample(str(count), count) for count in (5, 300, 0, 70, 20, 1000, 8)]
    assert [each.count for each in across_counts(samples, 3)] == [0, 20, 1000]
    assert len(across_counts(samples, 100)) == 7


def test_tags_are_counted_the_most_frequent_first():
    samples = [
        sample("a", 1, scene="street"),
        sample("b", 1, scene="hall", weather="fog"),
        sample("c", 1, scene="hall"),
    ]
    assert tag_counts(samples) == {"scene": {"hall": 2, "street": 1}, "weather": {"fog": 1}}
