"""What is written of the process that made a run: never a password."""

import pytest

from gbdgc.runs import without_password


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
