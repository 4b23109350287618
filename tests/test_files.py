"""Atomic writes: the old content or the new, never half."""

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gbdgc.errors import InputError
from gbdgc.files import atomic_write, folder_beside


def test_the_name_appears_only_with_the_whole_content(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "file.txt"
    with atomic_write(path, "w") as file:
        file.write("half")
        file.flush()
        assert not path.exists()
        file.write(" and half")
    assert path.read_text() == "half and half"
    assert [entry.name for entry in path.parent.iterdir()] == ["file.txt"]


def test_a_failure_while_writing_leaves_the_old_content_and_no_litter(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    path.write_text("old")

    def fail_half_way() -> None:
        with atomic_write(path, "w") as file:
            file.write("new")
            raise KeyError("somewhere else")

    with pytest.raises(KeyError):
        fail_half_way()
    assert path.read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_full_disk_is_named_and_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "file.bin"
    path.write_bytes(b"old")
    # A limit on file size is a disk that is full for this process alone.
    script = (
        "import resource, signal\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "from gbdgc.files import atomic_write\n"
        f"with atomic_write({str(path)!r}) as file: file.write(bytes(100_000))\n"
    )
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert answer.returncode != 0
    assert "InputError" in answer.stderr
    assert os.strerror(errno.EFBIG) in answer.stderr
    assert path.read_bytes() == b"old"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_read_only_file_system_is_named(tmp_path: Path) -> None:
    mounted = ["unshare", "-rm", "sh", "-c", 'mount -t tmpfs -o ro none "$0" && exec "$@"', str(tmp_path)]
    if not shutil.which("unshare") or subprocess.run([*mounted, "true"], capture_output=True).returncode:
        pytest.skip("needs leave to mount in a namespace of its own")
    code = "import sys; from gbdgc.files import atomic_write\nwith atomic_write(sys.argv[1]): pass"
    command = [*mounted, sys.executable, "-c", code, str(tmp_path / "report.html")]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert "InputError" in answer.stderr.splitlines()[-1]
    assert "report.html: could not be written (Read-only file system)" in answer.stderr


def test_permissions_are_those_of_an_ordinary_file(tmp_path: Path) -> None:
    with atomic_write(tmp_path / "ours") as file:
        file.write(b"")
    (tmp_path / "plain").touch()
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_folder_that_is_a_file_is_an_error_that_says_so(tmp_path: Path) -> None:
    (tmp_path / "blocked").touch()
    with (
        pytest.raises(InputError, match=r"blocked: this folder cannot be made \(.+\); choose another"),
        atomic_write(tmp_path / "blocked" / "file") as file,
    ):
        file.write(b"")


def test_the_folder_of_an_export_that_was_killed_is_swept_by_the_next_but_not_one_at_work(tmp_path: Path) -> None:
    script = (
        "import os, pathlib\n"
        "from gbdgc.files import folder_beside\n"
        f"with folder_beside(pathlib.Path({str(tmp_path / 'model.onnx')!r})) as folder:\n"
        "    (folder / 'half').touch()\n"
        "    os.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", script], timeout=60)
    (killed,) = tmp_path.iterdir()
    with folder_beside(tmp_path / "other.onnx") as at_work:
        for folder in (killed, at_work):
            os.utime(folder, (0, 0))
        with folder_beside(tmp_path / "model.onnx") as made:
            assert set(tmp_path.iterdir()) == {at_work, made}
    assert not list(tmp_path.iterdir())
