import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from gbdgc.data import Dataset, Sample, load_dataset
from gbdgc.data.converting import ConversionSettings, convert
from gbdgc.data.images import image_size, read_image
from gbdgc.errors import InputError, UsageError
from gbdgc.files import claim

SMALL = ConversionSettings(max_side=80)
SIDEWAYS = Image.Exif()
SIDEWAYS[0x0112] = 6


@pytest.fixture
def source(tmp_path: Path, save_scene) -> Path:
    """Three labelled pictures of 160 x 120, one of 60 x 40, and one without labels."""
    folder = tmp_path / "source"
    samples = []
    for number, (width, height) in enumerate([(160, 120), (160, 120), (160, 120), (60, 40), (160, 120)]):
        path = save_scene(folder / f"{number}.png", number, width, height)
        points = None if number == 4 else np.array([[width / 2, height / 4], [0.25, 0.75]], dtype=np.float32)
        split, tags = ("test", {}) if number == 2 else ("train", {"scene": "street"})
        samples.append(Sample(f"set/{number}", path, width, height, points, split, tags))
    Dataset(samples).save(folder / "manifest.jsonl")
    return folder


def files(folder: Path) -> dict[str, tuple[int, int]]:
    """Every file with its time of change and inode: what was written anew has others."""
    return {
        str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.stat().st_ino)
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_pictures_and_points_are_resized_together_and_the_rest_is_kept(source, tmp_path):
    result = convert(source, tmp_path / "out", settings=SMALL)
    data = load_dataset(tmp_path / "out")
    assert (result.redrawn, result.copied, result.kept) == (4, 1, 0)
    assert data.ids == [f"set/{number}" for number in range(5)]
    first = data[0]
    assert (first.width, first.height, first.split, first.tags) == (80, 60, "train", {"scene": "street"})
    assert first.points.tolist() == [[40, 15], [0.125, 0.375]]
    assert data[4].points is None
    assert data[2].split == "test"
    assert image_size(first.image) == (80, 60)
    halved = read_image(source / "0.png").reshape(60, 2, 80, 2, 3).mean(axis=(1, 3))
    assert abs(read_image(first.image) - halved).mean() < 4


def test_a_picture_that_keeps_its_size_is_copied_byte_for_byte(source, tmp_path):
    convert(source, tmp_path / "out", settings=SMALL)
    assert (tmp_path / "out/images/set/3.png").read_bytes() == (source / "3.png").read_bytes()


def test_a_rotated_picture_is_written_upright(tmp_path, save_scene):
    save_scene(tmp_path / "in/a.jpg", 1, exif=SIDEWAYS)
    convert(tmp_path / "in", tmp_path / "out")
    (sample,) = load_dataset(tmp_path / "out")
    assert (sample.width, sample.height) == (120, 160)
    with Image.open(sample.image) as stored:
        assert stored.size == (120, 160)
    assert abs(read_image(sample.image).astype(float) - read_image(tmp_path / "in/a.jpg")).mean() < 3


@pytest.mark.parametrize(
    ("settings", "size", "expected"),
    [
        (ConversionSettings(), (4000, 3000), (1920, 1440)),
        (ConversionSettings(), (640, 480), (640, 480)),
        (ConversionSettings(max_side=1024, min_side=512), (300, 200), (768, 512)),
        (ConversionSettings(max_side=1000, min_side=500), (4000, 400), (5000, 500)),
        (ConversionSettings(max_side=10), (100000, 1), (10, 1)),
    ],
)
def test_sides_are_bounded_and_proportions_kept(settings, size, expected):
    assert settings.size_for(*size) == expected


@pytest.mark.parametrize(
    "wrong", [{"max_side": 0}, {"min_side": 3000}, {"min_side": 0}, {"quality": 0}, {"quality": 101}]
)
def test_impossible_settings_are_refused(wrong):
    with pytest.raises(UsageError):
        ConversionSettings(**wrong)


def test_a_second_run_writes_no_picture_again(source, tmp_path):
    convert(source, tmp_path / "out", settings=SMALL)
    before = files(tmp_path / "out/images")
    again = convert(source, tmp_path / "out", settings=SMALL)
    assert (again.redrawn, again.copied, again.kept) == (0, 0, 5)
    assert files(tmp_path / "out/images") == before


def test_only_what_is_missing_or_changed_is_done_again(source, tmp_path, save_scene):
    convert(source, tmp_path / "out", settings=SMALL)
    before = files(tmp_path / "out/images")
    save_scene(source / "0.png", 99)
    (tmp_path / "out/images/set/1.jpg").unlink()
    (tmp_path / "out/images/set/2.jpg").write_bytes(b"cut short")
    again = convert(source, tmp_path / "out", settings=SMALL)
    after = files(tmp_path / "out/images")
    assert (again.redrawn, again.kept) == (3, 2)
    assert {name for name in after if after[name] == before[name]} == {"set/3.png", "set/4.jpg"}


def test_other_settings_do_all_again_and_leave_nothing_of_the_old(source, tmp_path):
    convert(source, tmp_path / "out", settings=SMALL)
    again = convert(source, tmp_path / "out")
    assert (again.copied, again.kept) == (5, 0)
    assert set(files(tmp_path / "out/images")) == {f"set/{number}.png" for number in range(5)}


def test_two_processes_do_not_convert_into_one_folder(source, tmp_path):
    (tmp_path / "out").mkdir()
    with claim(tmp_path / "out"), pytest.raises(InputError, match="another process is at work there"):
        convert(source, tmp_path / "out", settings=SMALL)


def test_a_journal_whose_last_line_was_cut_short_loses_that_line_only(source, tmp_path):
    convert(source, tmp_path / "out", settings=SMALL)
    journal = tmp_path / "out/conversion.jsonl"
    journal.write_text(journal.read_text()[:-20])
    assert convert(source, tmp_path / "out", settings=SMALL).kept == 4
    assert convert(source, tmp_path / "out", settings=SMALL).kept == 5


def test_a_run_that_was_killed_goes_on(source, tmp_path):
    out = tmp_path / "out"
    convert(source, out, settings=SMALL)
    (out / "manifest.jsonl").unlink()
    (out / "images/set/.0.jpg.1a2b3c4d5e6f.part").write_bytes(b"half a picture")
    (out / "images/set/0.jpg").unlink()
    assert convert(source, out, settings=SMALL).redrawn == 1
    assert not list(out.rglob("*.part"))
    assert len(load_dataset(out)) == 5


def test_strict_lists_all_bad_pictures_and_skipping_them_needs_no_second_conversion(source, tmp_path):
    (source / "0.png").write_bytes((source / "0.png").read_bytes()[:-2000])
    (source / "1.png").write_bytes(b"")
    with pytest.raises(InputError) as caught:
        convert(source, tmp_path / "out", settings=SMALL)
    assert "2 pictures cannot be converted" in str(caught.value)
    assert all(
        part in str(caught.value) for part in ("0.png: damaged or truncated", "1.png: the file is empty", "(skip_bad)")
    )
    assert not (tmp_path / "out/manifest.jsonl").exists()
    result = convert(source, tmp_path / "out", settings=SMALL, skip_bad=True)
    assert result.kept == 3
    assert len(result.dataset.problems) == 2
    assert load_dataset(tmp_path / "out").ids == ["set/2", "set/3", "set/4"]


def test_the_source_is_never_written_to(source, tmp_path):
    before = files(source)
    for dest in (source, source / "small", tmp_path, source / ".." / "source" / "x"):
        with pytest.raises(InputError, match="choose a folder apart"):
            convert(source, dest, settings=SMALL)
    link = tmp_path / "link"
    link.symlink_to(source)
    with pytest.raises(InputError, match="choose a folder apart"):
        convert(source, link / "small", settings=SMALL)
    convert(source, tmp_path / "out", settings=SMALL)
    assert files(source) == before


def test_ids_that_are_no_file_names_stay_in_the_folder_and_apart(tmp_path, save_scene):
    ids = ["../../escape", "/root", "a:b", "a?b", "a.png", "a", "A", "..", "x/../y"]
    samples = [Sample(id, save_scene(tmp_path / f"in/{n}.png", n), 160, 120) for n, id in enumerate(ids)]
    Dataset(samples).save(tmp_path / "in/manifest.jsonl")
    result = convert(tmp_path / "in", tmp_path / "out")
    images = [sample.image.resolve() for sample in result.dataset]
    assert len(set(images)) == len(ids)
    assert all(image.is_relative_to((tmp_path / "out/images").resolve()) for image in images)
    assert [image.read_bytes() for image in images] == [sample.image.read_bytes() for sample in samples]
    assert load_dataset(tmp_path / "out").ids == ids


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no names that are not text")
def test_names_that_are_not_text_and_meet_are_kept_apart(tmp_path, save_scene):
    for number, name in enumerate([b"a\xff.png", b"a\xff.jpg"]):
        save_scene(tmp_path / "in" / os.fsdecode(name), number)
    result = convert(tmp_path / "in", tmp_path / "out")
    assert len({sample.image.with_suffix("") for sample in result.dataset}) == 2
    assert all(sample.image.is_file() for sample in result.dataset)


def test_a_strip_that_no_jpeg_could_hold_is_a_problem_of_its_own(tmp_path, save_scene):
    save_scene(tmp_path / "in/good.png", 0)
    save_scene(tmp_path / "in/strip.png", 1, 2000, 2)
    result = convert(tmp_path / "in", tmp_path / "out", settings=ConversionSettings(min_side=100), skip_bad=True)
    assert result.dataset.ids == ["good.png"]
    (problem,) = result.dataset.problems
    assert "strip.png: would be 100000 x 100 pixels, and a JPEG has at most 65500 a side" in problem


FULL = """
import resource, sys
from gbdgc.cli import app, main
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv.pop(1)),) * 2)
main()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="limits on file sizes are POSIX's")
def test_a_full_disk_is_named_what_is_done_stays_and_the_next_run_goes_on(tmp_path, save_scene):
    for number in range(4):
        save_scene(tmp_path / f"in/{number}.png", number)
    save_scene(tmp_path / "in/large.png", 9, 1200, 900)
    command = [sys.executable, "-c", FULL, "300000", "data", "convert", str(tmp_path / "in"), str(tmp_path / "out")]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert answer.returncode == 1
    assert "could not be written (File too large)" in answer.stderr
    assert "Traceback" not in answer.stderr
    assert not list((tmp_path / "out").rglob("*.part"))
    assert not (tmp_path / "out/manifest.jsonl").exists()
    done = [json.loads(line) for line in (tmp_path / "out/conversion.jsonl").read_text().splitlines()]
    assert len(done) == 4
    again = convert(tmp_path / "in", tmp_path / "out")
    assert (again.kept, again.copied) == (len(done), 1)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root may mount a small disk")
def test_a_disk_without_room_is_named_and_room_is_all_it_needs(tmp_path, save_scene, monkeypatch):
    pictures = [save_scene(tmp_path / f"in/{number}.png", number, 320, 240) for number in range(8)]
    # One after another: on many cores all are half written when the disk is full, and none is done.
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0}, raising=False)
    room = sum(picture.stat().st_size for picture in pictures) // 2
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={room}", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("this container may not mount")
    try:
        with pytest.raises(InputError, match="No space left on device") as caught:
            convert(tmp_path / "in", disk / "out")
        done = len((disk / "out/conversion.jsonl").read_text().splitlines())
        assert f"{done} of the 8 pictures to convert are done and stay" in str(caught.value)
        assert 0 < done < 8
        subprocess.run(["mount", "-o", "remount,size=8m", str(disk)], check=True)
        assert convert(tmp_path / "in", disk / "out").kept == done
        assert len(load_dataset(disk / "out")) == 8
    finally:
        subprocess.run(["umount", str(disk)], check=True)
