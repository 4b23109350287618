"""The folder of a training, read back as it was written."""

from pathlib import Path

import pytest

from gbdgc.errors import InputError
from gbdgc.runs import TrainingRun


def test_domains_come_back_in_order_with_any_name_a_picture_can_have(tmp_path: Path) -> None:
    run = TrainingRun(tmp_path)
    first = {"=1+1.jpg": 1, 'a "b",\r\nc': 0, "caf\udce9": 1}
    run.write_domains(0, first, {"churn": float("nan"), "epoch": 0})
    run.write_domains(1, dict.fromkeys(first, 2), {"churn": 0.5, "epoch": 1})
    assert "\n'=1+1.jpg,1\n" in (tmp_path / "domains" / "epoch_000.csv").read_bytes().decode(errors="surrogateescape")
    run = TrainingRun(tmp_path)
    assert [list(each.items()) for each in run.domains] == [list(first.items()), [(name, 2) for name in first]]
    assert run.stability == [{"churn": None, "epoch": 0}, {"churn": 0.5, "epoch": 1}]


def test_what_is_not_there_yet_is_empty_and_what_must_be_there_is_named(tmp_path: Path) -> None:
    run = TrainingRun(tmp_path)
    assert (run.metrics, run.domains, run.epoch_models, run.finished) == ([], [], [], False)
    with pytest.raises(InputError, match=r"not the folder of a training \(it has no config\.yaml\)"):
        _ = run.config
    for content in (None, "[]", "3", "[" * 100_000):
        if content is not None:
            (tmp_path / "environment.json").write_text(content)
        with pytest.raises(InputError, match=r"environment\.json: cannot be read .*resume it"):
            _ = run.environment
    run.mark_finished(True)
    assert run.finished
