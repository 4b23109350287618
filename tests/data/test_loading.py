import threading
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
import torch
from PIL import Image

from gbdgc.data import Dataset, Sample
from gbdgc.data.cache import ImageCache
from gbdgc.data.density import density_map
from gbdgc.data.images import read_image
from gbdgc.data.loading import Augmentation, Batches, TrainingSet, descriptor_images
from gbdgc.data.transforms import IMAGENET_MEAN, IMAGENET_STD, normalise
from gbdgc.errors import InputError

EVERYTHING = Augmentation(
    crop=32, scale=(0.6, 1.6), brightness=0.3, contrast=0.3, saturation=0.3, hue=0.1, grey=0.3, blur=0.3, noise=0.3
)
STILL = Augmentation(crop=40, flip=0)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pictures")
    random = np.random.default_rng(0)
    return Dataset(write_sample(folder, f"p{number:02}", 60 + number, 50, random) for number in range(20))


def write_sample(folder, id, width, height, random):
    Image.fromarray(random.integers(0, 256, (height, width, 3), dtype=np.uint8)).save(folder / f"{id}.png")
    points = (random.random((random.integers(0, 30), 2)) * (width, height)).astype(np.float32)
    return Sample(id, folder / f"{id}.png", width, height, points)


def training_set(dataset, augmentation=EVERYTHING, **settings):
    made = TrainingSet(dataset, augmentation, **settings)
    made.relabel({id: number % 3 for number, id in enumerate(dataset.ids)})
    return made


def assert_same_batches(first, second):
    first, second = list(first), list(second)
    assert len(first) == len(second) > 0
    for one, other in zip(first, second, strict=True):
        assert one.ids == other.ids
        assert torch.equal(one.images, other.images)
        assert torch.equal(one.people, other.people)
        assert torch.equal(one.domain, other.domain)


def test_a_native_augmentation_stays_near_the_scale_that_is_counted_at():
    wide = Augmentation(scale=[0.5, 3.0], mosaic=0.25, focus=0.3, brightness=0.6, grey=0.3)
    native = wide.native(1.25)
    assert native.scale == pytest.approx([1.0, 1.5625])
    assert (native.mosaic, native.focus) == (0, 0.3)
    assert (native.brightness, native.grey) == pytest.approx((0.2, 0.1))
    assert Augmentation(scale=[0.9, 1.1]).native().scale == [0.9, 1.1]
    assert Augmentation(scale=[0.4, 0.5]).native().scale == [0.5, 0.5]


def test_a_batch_is_what_a_network_takes(dataset):
    batch = next(iter(Batches(training_set(dataset), 6, 0)))
    assert batch.images.shape == (6, 3, 32, 32)
    assert batch.images.dtype == torch.float32
    assert batch.images.is_contiguous(memory_format=torch.channels_last)
    assert batch.people.shape == (6, 32, 32)
    assert batch.people.dtype == torch.float32
    assert batch.domain.dtype == torch.int64
    assert len(batch.ids) == 6


def test_without_chance_a_batch_holds_the_pictures_and_their_density_maps(tmp_path):
    random = np.random.default_rng(1)
    dataset = Dataset(write_sample(tmp_path, f"p{number}", 40, 40, random) for number in range(4))
    for batch in Batches(TrainingSet(dataset, STILL), 2, 0):
        for row, id in enumerate(batch.ids):
            sample = dataset.by_id(id)
            np.testing.assert_allclose(batch.images[row], normalise(read_image(sample.image)), atol=1e-6)
            np.testing.assert_allclose(batch.people[row], density_map(sample.points, 40, 40), atol=1e-7)


def test_each_map_holds_whole_heads_also_when_all_are_outside_the_picture(tmp_path):
    sample = write_sample(tmp_path, "p", 40, 40, np.random.default_rng(0))
    outside = Sample("p", sample.image, 40, 40, np.array([[-9, 5], [40, 40], [99, 99]], np.float32))
    _, density = TrainingSet(Dataset([outside]), Augmentation(crop=40)).item("p", 0)
    assert density.sum() == pytest.approx(3, rel=1e-4)


def test_crops_weigh_whole_heads(dataset):
    source = training_set(dataset)
    sums = [source.item(id, epoch).people.sum(dtype=np.float64) for id in dataset.ids for epoch in range(3)]
    np.testing.assert_allclose(sums, np.round(sums), rtol=1e-4)
    assert max(sums) > 3


def test_a_mosaic_shows_four_pieces_at_half_the_scale_with_their_heads(tmp_path):
    # One head in each square of 16 pixels, so that a crop of 64 has sixteen, and a mosaic of it four times as many.
    grid = np.stack(np.meshgrid(np.arange(8, 512, 16), np.arange(8, 512, 16)), axis=-1).reshape(-1, 2)
    Image.new("RGB", (512, 512)).save(tmp_path / "p.png")
    dataset = Dataset([Sample("p", tmp_path / "p.png", 512, 512, grid.astype(np.float32))])
    plain, mosaic = (TrainingSet(dataset, Augmentation(crop=64, mosaic=probability)) for probability in (0, 1))
    counts = [[source.item("p", epoch).people.sum() for epoch in range(20)] for source in (plain, mosaic)]
    np.testing.assert_allclose(counts, np.round(counts), rtol=1e-4)
    assert np.mean(counts[1]) == pytest.approx(4 * np.mean(counts[0]), rel=0.1)


def test_the_pieces_of_a_mosaic_keep_heads_on_their_pixels(tmp_path):
    pixels = np.zeros((200, 200, 3), np.uint8)
    points = np.random.default_rng(0).uniform(10, 190, size=(40, 2)).astype(np.float32)
    for x, y in points.astype(int):
        pixels[max(y - 2, 0) : y + 3, max(x - 2, 0) : x + 3] = 255
    Image.fromarray(pixels).save(tmp_path / "p.png")
    dataset = Dataset([Sample("p", tmp_path / "p.png", 200, 200, points)])
    source = TrainingSet(dataset, Augmentation(crop=64, mosaic=1), kernel=1, sigma=1.0)
    image, people = source.item("p", 0)
    assert image[0][people > 0.5].mean() > image[0].mean() + 2


def test_focus_places_crops_around_heads(tmp_path):
    Image.new("RGB", (400, 300)).save(tmp_path / "p.png")
    lone = Dataset([Sample("p", tmp_path / "p.png", 400, 300, np.array([[399, 2]], np.float32))])
    anywhere, focused = (TrainingSet(lone, Augmentation(crop=32, scale=[0.5, 2], focus=focus)) for focus in (0, 1))
    assert sum(anywhere.item("p", epoch).people.sum() for epoch in range(20)) < 5
    np.testing.assert_allclose([focused.item("p", epoch).people.sum() for epoch in range(20)], 1, rtol=1e-4)
    nobody = Dataset([Sample("p", tmp_path / "p.png", 400, 300, np.empty((0, 2), np.float32))])
    assert TrainingSet(nobody, Augmentation(crop=32, focus=1)).item("p", 0).people.sum() == 0


def test_an_epoch_shows_every_picture_once(dataset):
    seen = [id for batch in Batches(training_set(dataset), 5, 3) for id in batch.ids]
    assert sorted(seen) == dataset.ids
    assert seen != dataset.ids


def test_the_batches_are_the_same_whatever_the_number_of_workers(dataset):
    alone = list(Batches(training_set(dataset), 4, 1, seed=7, workers=0))
    for workers in (1, 2, 5):
        assert_same_batches(alone, Batches(training_set(dataset, cache_bytes=2**20), 4, 1, seed=7, workers=workers))


def test_the_batches_are_the_same_in_whatever_order_the_data_set_was_listed(dataset):
    backwards = Dataset(reversed(dataset.samples))
    labels = {id: number % 3 for number, id in enumerate(dataset.ids)}
    first, second = TrainingSet(dataset, EVERYTHING), TrainingSet(backwards, EVERYTHING)
    first.relabel(labels)
    second.relabel(labels)
    for balanced in (False, True):
        assert_same_batches(Batches(first, 4, 0, balanced=balanced), Batches(second, 4, 0, balanced=balanced))


def test_another_epoch_or_seed_gives_other_orders_and_other_crops(dataset):
    source = training_set(dataset)
    orders = {
        tuple(id for batch in Batches(source, 5, epoch, seed=seed, workers=0) for id in batch.ids)
        for epoch, seed in [(0, 0), (1, 0), (0, 1)]
    }
    assert len(orders) == 3
    crops = [source.item("p00", 0), source.item("p00", 1), training_set(dataset, seed=1).item("p00", 0)]
    assert not any(np.array_equal(one.image, other.image) for one, other in pairwise(crops))


@pytest.mark.parametrize("balanced", [False, True])
def test_an_epoch_goes_on_from_the_step_where_it_stopped(dataset, balanced):
    source = training_set(dataset)
    whole = list(Batches(source, 4, 2, balanced=balanced))
    rest = Batches(source, 4, 2, balanced=balanced, start=3)
    assert len(rest) == 2
    assert_same_batches(whole[3:], rest)


def test_going_on_does_not_read_the_pictures_that_are_done(dataset):
    source = training_set(dataset, cache_bytes=2**30)
    list(Batches(source, 4, 0, start=3))
    assert len(source.cache) == 8


@pytest.mark.parametrize("balanced", [False, True])
def test_two_processes_together_see_what_one_sees(dataset, balanced):
    source = training_set(dataset)
    ranks = [list(Batches(source, 6, 0, rank=rank, world_size=2, balanced=balanced)) for rank in range(2)]
    for whole, first, second in zip(Batches(source, 6, 0, balanced=balanced), *ranks, strict=True):
        assert len(first.ids) == 3
        assert whole.ids == first.ids + second.ids
        assert torch.equal(whole.images, torch.cat([first.images, second.images]))


@pytest.mark.parametrize("batch_size", [7, 9])
def test_balanced_batches_hold_the_domains_in_equal_parts(dataset, batch_size):
    source = TrainingSet(dataset, EVERYTHING)
    source.relabel({id: 0 if number < 15 else number % 2 + 5 for number, id in enumerate(dataset.ids)})
    batches = list(Batches(source, batch_size, 0, balanced=True))
    assert len(batches) == 2
    for batch in batches:
        counts = Counter(batch.domain.tolist())
        assert set(counts) == {0, 5, 6}
        assert max(counts.values()) - min(counts.values()) <= 1
        assert batch.domain.tolist() == [source.domains()[id] for id in batch.ids]


def test_a_small_domain_shows_new_crops_of_its_pictures_when_they_come_again(dataset):
    source = TrainingSet(dataset, EVERYTHING)
    source.relabel({id: int(id == "p03") for id in dataset.ids})
    (batch,) = Batches(source, 20, 0, balanced=True)
    rows = [row for row, id in enumerate(batch.ids) if id == "p03"]
    assert len(rows) == 10
    assert len({batch.images[row].numpy().tobytes() for row in rows}) == 10


def test_a_set_smaller_than_a_batch_fills_it_with_further_crops(dataset):
    (batch,) = Batches(training_set(dataset[:3]), 8, 0)
    assert sorted(Counter(batch.ids).values()) == [2, 3, 3]
    assert len({image.numpy().tobytes() for image in batch.images}) == 8


def test_a_batch_that_would_not_be_full_is_left_out(dataset):
    assert len(dataset) == 20
    assert [len(batch.ids) for batch in Batches(training_set(dataset), 8, 0)] == [8, 8]


def test_relabelling_replaces_the_labels_of_the_next_epoch_and_not_of_this_one(dataset):
    source = TrainingSet(dataset, EVERYTHING)
    assert set(source.domains().values()) == {0}
    running = iter(Batches(source, 5, 0))
    next(running)
    source.relabel(dict.fromkeys(dataset.ids, 4))
    assert all((batch.domain == 0).all() for batch in running)
    assert all((batch.domain == 4).all() for batch in Batches(source, 5, 1))


def test_labels_for_other_pictures_are_refused(dataset):
    source = TrainingSet(dataset, EVERYTHING)
    labels = dict.fromkeys(dataset.ids, 1)
    with pytest.raises(InputError, match=r"1 are missing \(such as p05\)"):
        source.relabel({id: label for id, label in labels.items() if id != "p05"})
    with pytest.raises(InputError, match=r"1 are not in the training set \(such as stranger\)"):
        source.relabel(labels | {"stranger": 1})
    assert set(source.domains().values()) == {0}


def worker_threads():
    return [thread for thread in threading.enumerate() if thread.name.startswith("gbdgc-data")]


def test_no_thread_is_left_when_the_consumer_stops_early(dataset):
    batches = iter(Batches(training_set(dataset), 2, 0))
    next(batches)
    assert worker_threads()
    batches.close()
    assert not worker_threads()
    for _ in Batches(training_set(dataset), 2, 0):
        break
    assert not worker_threads()


@pytest.mark.parametrize("workers", [0, 2])
def test_a_picture_that_does_not_decode_is_named(dataset, tmp_path, workers):
    broken = tmp_path / "broken.jpg"
    broken.write_bytes(b"\xff\xd8\xff not a picture")
    bad = Sample("broken", broken, 50, 50, np.zeros((0, 2), np.float32))
    with pytest.raises(InputError, match=r"broken\.jpg"):
        list(Batches(TrainingSet(Dataset([*dataset, bad]), EVERYTHING), 3, 0, workers=workers))
    assert not worker_threads()


def test_a_picture_of_another_size_than_its_label_is_named(dataset):
    sample = dataset[0]
    lying = Sample(sample.id, sample.image, 600, 50, sample.points)
    with pytest.raises(InputError, match=r"p00\.png: 60 x 50 pixels, but its sample p00 says 600 x 50"):
        TrainingSet(Dataset([lying]), EVERYTHING).item("p00", 0)


def test_samples_without_labels_and_empty_sets_are_refused(dataset):
    sample = dataset[0]
    with pytest.raises(InputError, match=r"1 of 1 samples have no labels, such as p00"):
        TrainingSet(Dataset([Sample("p00", sample.image, 60, 50)]), EVERYTHING)
    with pytest.raises(InputError, match="no samples"):
        TrainingSet(Dataset([]), EVERYTHING)


@pytest.mark.parametrize(
    "settings",
    [{"crop": 0}, {"scale": (0.0, 1.0)}, {"scale": (2.0, 1.0)}, {"flip": 1.5}, {"grey": -0.1}, {"hue": -1.0}],
)
def test_augmentation_without_sense_is_refused_by_name(settings):
    with pytest.raises(InputError, match=f"{next(iter(settings))}="):
        Augmentation(**settings)


def test_batches_that_processes_cannot_share_are_refused(dataset):
    with pytest.raises(InputError, match="cannot be shared equally by 2"):
        Batches(training_set(dataset), 5, 0, world_size=2)


def test_the_cache_keeps_to_its_limit_and_keeps_what_came_first(dataset):
    first = dataset[0]
    cache = ImageCache(2 * 60 * 50 * 3)
    kept = cache.read(first)
    for sample in dataset:
        cache.read(sample)
    assert cache.size <= cache.limit
    assert len(cache) == 1
    assert cache.read(first) is kept
    assert not kept.flags.writeable


def test_a_cached_picture_gives_the_same_crop_as_a_fresh_one(dataset):
    cached, fresh = training_set(dataset, cache_bytes=2**30), training_set(dataset)
    for _ in range(2):
        assert_same_batches(Batches(cached, 5, 0), Batches(fresh, 5, 0))
    assert len(cached.cache) == 20
    assert len(fresh.cache) == 0


def test_a_limit_on_the_side_shrinks_pictures_and_points_together(tmp_path):
    Image.new("RGB", (400, 200)).save(tmp_path / "p.png")
    points = np.array([[380, 20], [30, 190]], np.float32)
    source = TrainingSet(
        Dataset([Sample("p", tmp_path / "p.png", 400, 200, points)]), Augmentation(crop=50, flip=0), max_side=100
    )
    assert source.cache.read(source.dataset[0]).shape == (50, 100, 3)
    densities = [source.item("p", epoch).people for epoch in range(40)]
    rows = {int(density.argmax()) // 50 for density in densities if density.sum() > 0.5}
    assert rows <= {5, 47}
    assert rows


def test_whole_pictures_for_descriptors_come_in_the_order_of_the_data_set(dataset):
    batches = list(descriptor_images(dataset, size=24, batch_size=8))
    assert [id for ids, _ in batches for id in ids] == dataset.ids
    assert [tuple(images.shape) for _, images in batches] == [(8, 3, 24, 24), (8, 3, 24, 24), (4, 3, 24, 24)]
    expected = Image.open(dataset[9].image).resize((24, 24), Image.Resampling.BILINEAR)
    image = batches[1][1][1].permute(1, 2, 0).numpy() * IMAGENET_STD + IMAGENET_MEAN
    np.testing.assert_allclose(255 * image, np.asarray(expected), atol=1.01)


def test_pictures_for_descriptors_are_decoded_once_where_there_is_a_cache(dataset, tmp_path):
    copies = []
    for sample in dataset[:5]:
        copy = tmp_path / sample.image.name
        copy.write_bytes(sample.image.read_bytes())
        copies.append(Sample(sample.id, copy, sample.width, sample.height))
    cache = ImageCache(2**20)
    first = list(descriptor_images(Dataset(copies), size=24, cache=cache))
    for sample in copies:
        sample.image.unlink()
    second = list(descriptor_images(Dataset(copies), size=24, cache=cache))
    assert torch.equal(first[0][1], second[0][1])
    assert cache.size == 5 * 24 * 24 * 3
