"""`gbdgc weights` tells what is in the cache, and fails where it is damaged."""

from pathlib import Path

import pytest
from safetensors.torch import save

from gbdgc.cli.weights import app, fetch, list_weights, verify
from gbdgc.errors import InputError
from gbdgc.models import weights
from gbdgc.models.compact import LiteEncoder


@pytest.fixture(autouse=True)
def cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GBDGC_CACHE", str(tmp_path))
    tensors, path = LiteEncoder().state_dict(), weights.cache_path("compact")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(save(tensors, metadata={"sha256": weights._digest(tensors)}))
    return path


def test_the_list_says_what_is_cached(cached: Path, capsys: pytest.CaptureFixture[str]) -> None:
    list_weights()
    listed = capsys.readouterr().out
    assert f"compact\t{cached}: cached\n" in listed
    assert f"vgg16\t{weights.cache_path('vgg16')}: not cached\n" in listed


def test_help_says_what_the_names_are(capsys: pytest.CaptureFixture[str]) -> None:
    app.help_print(["fetch"])
    assert "Encoders, such as vgg16" in capsys.readouterr().out


def test_fetching_prints_where_the_weights_are(cached: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fetch("compact")
    assert capsys.readouterr().out == f"{cached}\n"


def test_verifying_fails_on_damage(cached: Path, capsys: pytest.CaptureFixture[str]) -> None:
    verify()
    assert capsys.readouterr().out == f"{cached}\tintact\n"
    cached.write_bytes(cached.read_bytes()[:-1])
    with pytest.raises(InputError, match="weights fetch"):
        verify()
    assert "damaged" in capsys.readouterr().out
