"""A run: what it leaves behind, and that nothing that happens to it changes the outcome."""

import csv
import hashlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from gbdgc import checkpoint
from gbdgc.config import Config
from gbdgc.domains import align_labels
from gbdgc.errors import InputError, UsageError
from gbdgc.models import build_network
from gbdgc.training import TrainingRun, train
from gbdgc.training.state import build_optimizer

MakeConfig = Callable[..., Config]
EVERYTHING_WITH_A_MEMORY = {
    "discovery__mode": "stable",
    "discovery__descriptors": "online",
    "train__average": 0.9,
    "train__schedule": "onecycle",
    "train__checkpoint_seconds": 0,
}


def command(config: Path, folder: Path, *overrides: str) -> list[str]:
    return [sys.executable, "-m", "gbdgc", "train", str(config), *overrides, "--out", str(folder)]


def outcome(folder: Path) -> dict[str, object]:
    """Everything that must be the same, to the bit, however often a run was interrupted."""
    tensors, info = checkpoint.read(folder / "checkpoints" / checkpoint.LAST)
    best, _ = checkpoint.read(folder / "checkpoints" / checkpoint.BEST)
    plain = {
        name: digest(tensor.numpy().tobytes()) for name, tensor in (tensors | checkpoint.nest("best", best)).items()
    }
    domains = {path.name: digest(path.read_bytes()) for path in sorted((folder / "domains").iterdir())}
    metrics = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    for record in metrics:
        record.pop("images_per_second")
    return {"tensors": plain, "info": info, "domains": domains, "metrics": metrics}


def digest(content: bytes) -> str:
    """A few letters that stand for the content: where two megabytes differ, pytest would compare them for an hour."""
    return hashlib.sha256(content).hexdigest()[:12]


def test_a_run_leaves_a_model_its_settings_its_domains_and_a_record_of_each_epoch(trained: Path) -> None:
    run = TrainingRun(trained)
    assert run.finished
    assert {path.name for path in run.folder.iterdir()} == {
        "checkpoints",
        "config.yaml",
        "domains",
        "environment.json",
        "finished",
        "metrics.jsonl",
    }
    assert [record["epoch"] for record in run.metrics] == [1, 2]
    assert run.metrics[0]["validation"]["images"] == 4
    names = sorted(path.name for path in (run.folder / "domains").glob("*.csv"))
    assert names == ["epoch_000.csv", "epoch_001.csv", "epoch_002.csv"]
    rows = list(csv.DictReader((run.folder / "domains" / "epoch_002.csv").open()))
    assert len(rows) == 12
    assert {row["domain"] for row in rows} == {"0", "1"}
    stability = json.loads((run.folder / "domains" / "epoch_001.json").read_text())
    assert 0 <= stability["churn"] <= 1
    network, info, extras = checkpoint.load_model(run.folder)
    assert not network.training
    assert info["selection"] == "validation"
    assert not any(Path(place).is_absolute() for place in info["source"])
    assert "trust/cloud" in extras


def test_the_model_calls_its_domains_as_the_run_did(tiny_config: MakeConfig, tmp_path: Path) -> None:
    run = train(tiny_config(discovery__n_domains=4), folder=tmp_path / "run")
    rows = csv.DictReader((run.folder / "domains" / "epoch_002.csv").open())
    last, own = np.array([int(row["domain"]) for row in rows]), checkpoint.load_model(run.folder)[2]["trust/labels"]
    assert np.array_equal(align_labels(own, last), own)


def test_training_lowers_the_loss(tiny_config: MakeConfig, tmp_path: Path) -> None:
    changes = {"train__epochs": 14, "train__learning_rate": 1e-3, "model__dropout": 0, "method__name": "erm"}
    run = train(tiny_config(**changes), folder=tmp_path / "run")
    first, last = run.metrics[0]["losses"]["density"], run.metrics[-1]["losses"]["density"]
    assert last < 0.75 * first


def test_the_last_epochs_see_crops_at_the_scale_that_is_counted_at(tiny_config: MakeConfig, tmp_path: Path) -> None:
    changes = {"method__name": "erm", "augmentation__scale": [0.6, 3.0], "train__native_share": 0.5}
    whole = train(tiny_config(**changes | {"train__native_share": 0}), folder=tmp_path / "whole").metrics
    half = train(tiny_config(**changes), folder=tmp_path / "half").metrics
    assert half[0]["losses"] == whole[0]["losses"]
    assert half[1]["losses"] != whole[1]["losses"]


def test_same_seed_same_bits_another_seed_others(trained: Path, trained_config: Config, tmp_path: Path) -> None:
    again = train(trained_config, folder=tmp_path / "again").folder
    reseeded = replace(trained_config, train=replace(trained_config.train, seed=trained_config.train.seed + 1))
    other = train(reseeded, folder=tmp_path / "other").folder
    assert outcome(again)["tensors"] == outcome(trained)["tensors"]
    assert outcome(other)["tensors"] != outcome(trained)["tensors"]


@pytest.mark.slow
def test_a_run_that_is_killed_again_and_again_ends_as_if_nothing_had_happened(tiny_file: Path, tmp_path: Path) -> None:
    overrides = [f"{key.replace('__', '.')}={value}" for key, value in EVERYTHING_WITH_A_MEMORY.items()]
    # In a process of its own too: this one may compute on other threads by now.
    subprocess.run(command(tiny_file, tmp_path / "whole", *overrides), check=True, stderr=subprocess.PIPE)
    folder, kills = tmp_path / "killed", 0
    for writes in (1, 3, 2, None):
        resume = ["--resume"] if (folder / "config.yaml").exists() else []
        process = subprocess.Popen(command(tiny_file, folder, *overrides) + resume, stderr=subprocess.PIPE)
        if writes is not None:
            wait_for_writes(folder, process, writes)
            kills += process.poll() is None
            process.kill()
        process.communicate(timeout=300)
    assert process.returncode == 0
    assert kills >= 2
    assert outcome(folder) == outcome(tmp_path / "whole")


def wait_for_writes(folder: Path, process: subprocess.Popen[bytes], times: int) -> None:
    """Return when the run has written so often since it was started, or has ended."""
    before, until = newest_write(folder), time.monotonic() + 60
    while times and process.poll() is None and time.monotonic() < until:
        if (now := newest_write(folder)) != before:
            before, times = now, times - 1


def newest_write(folder: Path) -> int:
    """Return when anything in a folder was written last."""
    newest = 0
    for path in folder.rglob("*"):
        with suppress(FileNotFoundError):  # temporary files come and go
            newest = max(newest, path.stat().st_mtime_ns)
    return newest


@pytest.mark.parametrize(("number", "steps"), [(signal.SIGINT, 1), (signal.SIGTERM, 3)], ids=["middle", "end"])
def test_a_signal_saves_and_leaves_in_order_and_resume_goes_on_wherever_the_epoch_stood(
    trained: Path,
    trained_config: Config,
    tmp_path: Path,
    number: signal.Signals,
    steps: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stopped = stop_after(steps, trained_config, tmp_path / "stopped", number, monkeypatch)
    assert not stopped.finished
    _, info = checkpoint.read(stopped.folder / "checkpoints" / checkpoint.LAST)
    assert (info["epoch"], info["step"]) == (0, steps)
    resumed = train(trained_config, resume=True, folder=stopped.folder)
    assert resumed.finished
    assert outcome(resumed.folder) == outcome(trained)


def stop_after(
    steps: int,
    config: Config,
    folder: Path,
    number: signal.Signals,
    monkeypatch: pytest.MonkeyPatch,
    *,
    resume: bool = False,
) -> TrainingRun:
    """Send this very process a signal while a step is on."""
    from gbdgc.training import epoch

    original = epoch.backward
    seen = 0

    def backward_and_signal(*arguments: object, **options: object) -> object:
        nonlocal seen
        seen += 1
        if seen == steps:
            os.kill(os.getpid(), number)
        return original(*arguments, **options)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(epoch, "backward", backward_and_signal)
        return train(config, folder=folder, resume=resume)


@pytest.mark.parametrize("damage", ["truncated", "one byte flipped"])
def test_a_damaged_checkpoint_gives_way_to_the_one_before(
    trained_copy: Path, trained_config: Config, capsys: pytest.CaptureFixture[str], damage: str
) -> None:
    expected = outcome(trained_copy)
    last = trained_copy / "checkpoints" / checkpoint.LAST
    content = last.read_bytes()
    flipped = content[:-1000] + bytes([content[-1000] ^ 16]) + content[-999:]
    last.write_bytes(content[:-1000] if damage == "truncated" else flipped)
    again = train(trained_config, resume=True, folder=trained_copy)
    assert "resuming from the checkpoint before:" in (said := " ".join(capsys.readouterr().err.split()))
    assert "last.safetensors: damaged" in said
    assert outcome(again.folder) == expected


def test_lost_records_are_named_on_resume_and_the_training_goes_on(
    trained_copy: Path, trained_config: Config, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = outcome(trained_copy)
    metrics = trained_copy / "metrics.jsonl"
    metrics.write_bytes(metrics.read_bytes()[:-20])
    again = train(trained_config, resume=True, folder=trained_copy)
    assert "metrics.jsonl: no record of epoch 2; the training goes on" in " ".join(capsys.readouterr().err.split())
    assert [record["epoch"] for record in again.metrics] == [1]
    assert outcome(again.folder)["tensors"] == expected["tensors"]
    metrics.write_text('{"epoch": 1\n{"epoch": 2}\n')
    with pytest.raises(InputError, match=r"metrics\.jsonl: row 1 is damaged"):
        train(trained_config, resume=True, folder=trained_copy)


def test_a_state_that_lacks_something_is_named_on_resume(trained_copy: Path, trained_config: Config) -> None:
    run = TrainingRun(trained_copy)
    tensors, info = checkpoint.read(run.checkpoints / checkpoint.LAST)
    del info["precision"]
    checkpoint.write(run.checkpoints / checkpoint.LAST, tensors, info)
    with pytest.raises(InputError, match=r"this version can resume \(it has no 'precision'\); start a new run"):
        train(trained_config, resume=True, folder=run.folder)


def test_a_run_that_was_stopped_is_not_finished_though_it_was_before(
    trained_copy: Path, trained_config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = TrainingRun(trained_copy)
    assert run.finished
    for path in run.checkpoints.iterdir():
        path.unlink()
    assert not stop_after(1, trained_config, run.folder, signal.SIGTERM, monkeypatch, resume=True).finished
    assert train(trained_config, folder=run.folder, resume=True).finished


def test_a_full_disk_is_named_and_leaves_the_old_checkpoint_whole(
    tiny_config: MakeConfig, tiny_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = stop_after(1, tiny_config(), tmp_path / "run", signal.SIGTERM, monkeypatch)
    last = run.folder / "checkpoints" / checkpoint.LAST
    before = last.read_bytes()

    def no_room() -> None:
        # A limit on the size of files is a disk that is full for this process alone.
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    answer = subprocess.run(
        [*command(tiny_file, run.folder), "--resume"], capture_output=True, text=True, timeout=120, preexec_fn=no_room
    )
    assert answer.returncode == 1
    assert "could not be written" in answer.stderr
    assert "Traceback" not in answer.stderr
    assert last.read_bytes() == before
    assert train(tiny_config(), resume=True, folder=run.folder).finished


def test_a_loss_that_is_not_finite_stops_the_run_names_the_pictures_and_keeps_the_last_good_weights(
    tiny_config: MakeConfig, tmp_path: Path
) -> None:
    config = tiny_config(train__learning_rate=1e30, train__epochs=9, train__checkpoint_seconds=0)
    with pytest.raises(FloatingPointError, match=r"not finite at epoch .* pictures: \d\d, .*learning_rate"):
        train(config, folder=tmp_path / "run")
    tensors, _ = checkpoint.read(tmp_path / "run" / "checkpoints" / checkpoint.LAST)
    assert all(torch.isfinite(tensor).all() for tensor in tensors.values() if tensor.is_floating_point())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"augmentation__crop": 100}, "augmentation.crop=100: the network needs a multiple of 16"),
        ({"augmentation__scale": [1.0]}, "augmentation.scale"),
        ({"train__batch_size": 0}, "train.batch_size=0: at least one picture"),
        ({"train__micro_batch": -1}, "train.micro_batch=-1"),
        ({"train__epochs": 0}, "train.epochs=0: at least one"),
        ({"train__native_share": 1.5}, "train.native_share=1.5: a share of the epochs"),
        ({"train__precision": "half"}, "train.precision=half: not a precision; choose one of auto, 32-true"),
        ({"data__workers": -1}, "data.workers=-1"),
        ({"data__source": ["nowhere"]}, "nowhere: no such file or folder; give data.source=PATH, or set GBDGC_DATA"),
        ({"method__name": "magic"}, "method 'magic': there is no such method; choose one of gbdgc, mixing, erm"),
        ({"discovery__partition": "bals"}, "discovery.partition=bals: there is no such partition; choose one of balls"),
        ({"train__precision": "16-mixed"}, "train.precision=16-mixed: 16 bits need a graphics card"),
        ({"data__repeats": 0}, "data.repeats=0: at least one crop"),
        ({"data__shares": [0.5, 0.5]}, "one share for each of the 1 sources"),
        ({"data__exclude": ["nobody"]}, "data.exclude: nobody: no source has a picture of that id"),
        ({"data__max_side": 0}, "data.max_side=0: at least one pixel"),
        ({"train__clip_norm": -1.0}, "train.clip_norm=-1.0: above 0"),
        ({"discovery__image_size": 200}, "discovery.image_size=200: the network needs a multiple of 16"),
        ({"discovery__n_domains": 13, "method__name": "erm"}, "n_domains=13: there are 12 pictures to train on"),
        ({"model__options__frozen_block": 3}, "compact has no such option .there are: frozen_statistics, frozen_bl"),
        ({"data__validation": 0.01}, "leaves 16 to train on and 0 to choose by"),
        ({"data__validation": 1.5}, "a share of the source"),
        ({"discovery__n_domains": 0}, "at least two, or null"),
        ({"train__precision": "bf16-true"}, "choose one of auto, 32-true"),
        ({"discovery__descriptors": "online", "discovery__levels": "style"}, "discovery.descriptors=pass"),
    ],
)
def test_settings_that_cannot_work_are_refused_before_anything_is_trained(
    tiny_config: MakeConfig, tmp_path: Path, change: dict[str, object], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        train(tiny_config(**change), folder=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_run_that_could_not_begin_is_not_the_one_to_resume(
    trained: Path, trained_config: Config, tiny_config: MakeConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    begun = Path("runs/train/tiny-1")
    shutil.copytree(trained, begun)
    with pytest.raises(InputError, match="magic"):
        train(tiny_config(method__name="magic"))
    assert train(trained_config, resume=True).folder == begun


def test_what_a_user_keeps_in_a_runs_folder_outlives_a_failed_start(tiny_config: MakeConfig, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="magic"):
        train(tiny_config(method__name="magic"), folder=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_less_than_one_process_is_refused(tiny_config: MakeConfig, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="devices 0: at least one process"):
        train(tiny_config(), devices=0, folder=tmp_path / "run")


def test_settings_made_in_python_are_changed_there(tiny_config: MakeConfig, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="change the Config itself"):
        train(tiny_config(), ["train.epochs=1"], folder=tmp_path / "run")


def test_a_run_goes_on_with_more_readers_than_it_began_with(
    tiny_config: MakeConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop_after(1, tiny_config(), tmp_path / "run", signal.SIGTERM, monkeypatch)
    assert train(tiny_config(data__workers=2, data__cache_gigabytes=0.5), resume=True, folder=tmp_path / "run").finished


def test_resuming_with_other_settings_is_refused_by_name(
    trained_copy: Path, trained_config: Config, tiny_config: MakeConfig, tmp_path: Path
) -> None:
    other = tiny_config(train__schedule="onecycle", train__learning_rate=0.1)
    with pytest.raises(InputError, match=r"train\.learning_rate: 0\.0001 then, 0\.1 now"):
        train(other, resume=True, folder=trained_copy)
    with pytest.raises(InputError, match="holds a run already"):
        train(trained_config, folder=trained_copy)
    with pytest.raises(InputError, match="no run to resume; start it without resuming"):
        train(trained_config, resume=True, folder=tmp_path / "nowhere")


def test_resuming_without_an_option_that_was_there_is_refused(tiny_config: MakeConfig, tmp_path: Path) -> None:
    run = train(tiny_config(model__options__frozen_blocks=1, train__epochs=1), folder=tmp_path / "run")
    with pytest.raises(InputError, match=r"model\.options: \{'frozen_blocks': 1\} then, \{\} now"):
        train(tiny_config(train__epochs=1), resume=True, folder=run.folder)


def test_a_rate_of_zero_for_the_encoder_is_zero(tiny_config: MakeConfig) -> None:
    config = tiny_config(train__encoder_learning_rate=0)
    groups = build_optimizer(config, build_network("compact", pretrained=False, dim=16, codewords=32)).param_groups
    assert [group["lr"] for group in groups] == [0, 1e-4, 1e-4]


def test_tensorboard_gets_the_same_numbers(tiny_config: MakeConfig, tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    run = train(tiny_config(train__tensorboard=True), folder=tmp_path / "run")
    events = EventAccumulator(str(run.folder / "tensorboard")).Reload()
    written = [event.value for event in events.Scalars("validation/mae")]
    assert written == pytest.approx([record["validation"]["mae"] for record in run.metrics], rel=1e-6)
