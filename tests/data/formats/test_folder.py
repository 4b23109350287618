import os

import pytest

from gbdgc.data import load_dataset
from gbdgc.errors import InputError


def test_pictures_at_any_depth_have_no_labels(tmp_path, draw):
    for name in ("b/2.png", "b/10.png", "a.JPG", ".hidden/c.jpg", "b/._2.png"):
        draw(tmp_path / name)
    (tmp_path / "notes.txt").write_text("not a picture")
    data = load_dataset(tmp_path)
    assert data.format == "folder"
    assert data.ids == ["a.JPG", "b/2.png", "b/10.png"]
    assert len(data.labelled) == 0


def test_one_picture_is_a_data_set_of_one(tmp_path, draw):
    draw(tmp_path / "a.jpg")
    draw(tmp_path / "b.jpg")
    assert load_dataset(tmp_path / "a.jpg").ids == ["a.jpg"]


def test_nothing_to_read_is_an_error_that_lists_the_formats(tmp_path):
    with pytest.raises(
        InputError, match=r"nothing here looks like data in a format known here \(manifest, shanghaitech"
    ):
        load_dataset(tmp_path)
    with pytest.raises(InputError, match=r"missing: no such file or folder"):
        load_dataset(tmp_path / "missing")
    (tmp_path / "notes.txt").touch()
    with pytest.raises(InputError, match=r"notes.txt: this file does not look like data in a format known here"):
        load_dataset(tmp_path / "notes.txt")


@pytest.fixture
def as_nobody():
    """Run as a user whom permissions bind, where the tests run as root."""
    if os.name != "posix":
        pytest.skip("permissions of this kind are POSIX")
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    yield
    if user == 0:
        os.seteuid(0)


@pytest.fixture
def locked(tmp_path, draw):
    """A folder in a folder that anybody may enter, itself closed to everybody."""
    draw(tmp_path / "open.jpg")
    draw(tmp_path / "locked/closed.jpg")
    tops = [
        folder
        for folder in (tmp_path, *tmp_path.parents)
        if folder.owner() != "root" or folder.stat().st_mode & 0o77 == 0
    ]
    modes = {folder: folder.stat().st_mode for folder in tops}
    for folder in tops:
        folder.chmod(0o755)
    (tmp_path / "locked").chmod(0)
    yield tmp_path / "locked"
    (tmp_path / "locked").chmod(0o700)
    for folder, mode in modes.items():
        folder.chmod(mode)


def test_a_folder_that_may_not_be_read_is_an_error_not_an_empty_folder(locked, as_nobody):
    with pytest.raises(InputError, match=r"locked: cannot be read \(Permission denied\)"):
        load_dataset(locked)
    with pytest.raises(InputError, match=r"locked: this folder cannot be read \(Permission denied\)"):
        load_dataset(locked.parent)
    assert load_dataset(locked.parent, skip_bad=True).ids == ["open.jpg"]
