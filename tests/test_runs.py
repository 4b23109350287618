"""Run folders: numbered, each its own, and a clear word where there can be none."""

from pathlib import Path

import pytest

from gbdgc.errors import InputError
from gbdgc.runs import claim, new_run_folder, without_password


def test_every_run_gets_the_next_number(tmp_path: Path) -> None:
    made = [new_run_folder("eval", "street", tmp_path) for _ in range(2)]
    assert made == [tmp_path / "eval" / "street-1", tmp_path / "eval" / "street-2"]
    assert new_run_folder("eval", "square", tmp_path).name == "square-1"


def test_a_place_where_no_folder_can_be_is_named(tmp_path: Path) -> None:
    (tmp_path / "runs").touch()
    with pytest.raises(InputError, match=r"runs/eval: this folder cannot be made"):
        new_run_folder("eval", "street", tmp_path / "runs")
    with pytest.raises(InputError, match=r"street-1: this folder cannot be made"):
        new_run_folder("", "no/such/street", tmp_path)


def test_a_folder_is_for_one_at_a_time(tmp_path: Path) -> None:
    with claim(tmp_path), pytest.raises(InputError, match="another process is at work there"), claim(tmp_path):
        pass
    with claim(tmp_path):
        pass


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("rtsp://guard:half@secret@cam/door", "rtsp://***@cam/door"),
        ("http://cam/mjpg?user=a&pwd=secret", "http://cam/mjpg?user=a&pwd=***"),
        ("http://cam/video?PassWord=se/c_r=et&size=4", "http://cam/video?PassWord=***&size=4"),
        ("http://cam/live.cgi?loginuse=a&loginpas=secret", "http://cam/live.cgi?loginuse=a&loginpas=***"),
        ("https://host/a.m3u8?access_token=secret&api_key=secret", "https://host/a.m3u8?access_token=***&api_key=***"),
        ("srt://host:9?mode=caller&passphrase=secret", "srt://host:9?mode=caller&passphrase=***"),
        ("rtsp://ip/user=admin_password=secret_channel=1.sdp", "rtsp://ip/user=admin_password=***_channel=1.sdp"),
        ("rtsp://ip/user=admin&password=se_cret&channel=1", "rtsp://ip/user=admin&password=***&channel=1"),
        ("rtsp://ip/password=secret/ch1", "rtsp://ip/password=***/ch1"),
        ("--source=rtsp://a:secret@cam", "--source=rtsp://***@cam"),
        ("http://cam/mjpg?size=4&channel=2", "http://cam/mjpg?size=4&channel=2"),
        ("street?/key=1.jpg", "street?/key=1.jpg"),
    ],
)
def test_an_address_is_shown_without_its_password(address: str, shown: str) -> None:
    assert without_password(address) == shown
