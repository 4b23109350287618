"""`gbdgc data`: convert, check, show and demo."""

import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from in_process import run_gbdgc

Run = Callable[..., subprocess.CompletedProcess[str]]
COMMAND = (sys.executable, "-m", "gbdgc", "data")


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run a command in a folder of its own, where its run folders go."""

    def run_command(*arguments: object) -> subprocess.CompletedProcess[str]:
        return run_gbdgc("data", *arguments, folder=tmp_path)

    return run_command


def draw(path: Path, seed: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    noise = np.random.default_rng(seed).integers(0, 255, (12, 16, 3), dtype=np.uint8)
    Image.fromarray(noise).resize((160, 120), Image.Resampling.BICUBIC).save(path)


def write_manifest(folder: Path, points: dict[str, object]) -> Path:
    """Write a data set of drawn pictures with these points."""
    for seed, name in enumerate(points):
        draw(folder / f"{name}.png", seed)
    lines = [{"id": name, "image": f"{name}.png", "points": each, "split": "train"} for name, each in points.items()]
    (folder / "manifest.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


@pytest.fixture
def good(tmp_path: Path) -> Path:
    return write_manifest(tmp_path / "good", {"a": [[3, 4]], "b": [[5, 6], [7, 8]], "c": []})


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    folder = write_manifest(tmp_path / "bad", {"a": [[3, 4]], "[b]": [[500, 6]], "c": [[1, 1], [1, 1]], "d": [[1, 2]]})
    (folder / "d.png").write_bytes((folder / "d.png").read_bytes()[:-500])
    return folder


def test_check_of_good_data_ends_well_and_says_where_the_sheet_is(run, good, tmp_path):
    answer = run("check", good)
    assert answer.returncode == 0
    assert "3 pictures read as manifest, nothing wrong" in answer.stdout
    last = answer.stdout.splitlines()[-1]
    assert last == "contact sheet: runs/data-check/good-1/contact_sheet.html"
    assert (tmp_path / last.removeprefix("contact sheet: ")).is_file()
    assert (tmp_path / "runs/data-check/good-1/environment.json").is_file()


def test_check_says_once_that_nothing_is_wrong(run, tmp_path):
    answer = run("check", write_manifest(tmp_path / "good", {"a": [[3, 4]], "b": [[5, 6]]}))
    assert [line.split(":")[0] for line in answer.stdout.splitlines()] == [
        "2 pictures read as manifest, nothing wrong",
        "contact sheet",
    ]


def test_check_of_bad_data_lists_every_kind_and_fails(run, bad):
    answer = run("check", bad)
    assert answer.returncode == 1
    for text in ("point outside the picture", "duplicate point", "picture that does not decode", "[b]: 1 of 1"):
        assert text in answer.stdout
    assert "checking" in answer.stderr
    assert "checking" not in answer.stdout


def test_check_speaks_json_to_machines_and_to_nobody_else(run, bad, tmp_path):
    answer = run("check", bad, "--json", "--out", tmp_path / "report")
    assert answer.returncode == 1
    report = json.loads(answer.stdout)
    assert report["wrong"] == 3
    assert [(each["kind"], each["ids"]) for each in report["findings"]] == [
        ("undecodable", ["d"]),
        ("outside", ["[b]"]),
        ("doubled", ["c"]),
    ]
    assert report["findings"][1]["points"] == [[500, 6]]
    assert report == json.loads((tmp_path / "report/findings.json").read_text())
    assert Path(report["contact_sheet"]).is_file()
    assert answer.stderr.splitlines()[-1].startswith("contact sheet: ")


def test_check_lists_what_the_reader_cannot_read_instead_of_stopping(run, good):
    with (good / "manifest.jsonl").open("a") as file:
        file.write('{"id": "e", "image": "nowhere.png"}\nno JSON\n')
    report = json.loads(run("check", good, "--json").stdout)
    assert report["images"] == 3
    assert [each["kind"] for each in report["findings"]] == ["unread", "unread", "empty"]


def test_show_prints_statistics_and_draws_the_pictures(run, good, tmp_path):
    answer = run("show", good)
    assert answer.returncode == 0
    assert "2 to 4 heads" in answer.stdout
    assert answer.stdout.splitlines()[-1] == "contact sheet: runs/data-show/good-1/contact_sheet.html"
    assert (tmp_path / "runs/data-show/good-1/contact_sheet.html").read_text().count("data:image/jpeg") == 3


def test_show_speaks_json(run, good):
    answer = run("show", good, "--json")
    report = json.loads(answer.stdout)
    assert report["splits"]["train"]["heads"] == 3
    assert report["histogram"] == [{"low": low, "high": high, "images": 1} for low, high in ((0, 0), (1, 1), (2, 4))]


def test_convert_prints_the_manifest_and_nothing_else(run, good, tmp_path):
    answer = run("convert", good, tmp_path / "out", "--max-side", 80)
    assert answer.returncode == 0
    assert answer.stdout == f"{tmp_path / 'out' / 'manifest.jsonl'}\n"
    assert "3 pictures read as manifest: 3 resized or turned, 0 copied, 0 there already" in answer.stderr


def test_convert_is_strict_unless_told_and_its_exit_code_says_what_was_left_out(run, bad, tmp_path):
    strict = run("convert", bad, tmp_path / "out")
    assert (strict.returncode, strict.stdout) == (1, "")
    assert "d.png: damaged or truncated" in strict.stderr
    assert "Traceback" not in strict.stderr
    lenient = run("convert", bad, tmp_path / "out", "--skip-bad")
    assert lenient.returncode == 1
    assert Path(lenient.stdout.strip()).is_file()
    assert "left out, 1:" in lenient.stderr
    assert "3 there already" in lenient.stderr


def test_every_command_takes_the_point_of_a_box(run, tmp_path):
    draw(tmp_path / "boxes/a.png", 0)
    box = {"id": 1, "image_id": 1, "category_id": 1, "bbox": [10, -15, 20, 30]}
    categories, images = [{"id": 1, "name": "head"}], [{"id": 1, "file_name": "a.png", "width": 160, "height": 120}]
    content = {"images": images, "annotations": [box], "categories": categories}
    (tmp_path / "boxes/labels.json").write_text(json.dumps(content))
    assert run("check", "boxes").returncode == 1  # the head of this box is above the picture, its centre is not
    assert run("check", "boxes", "--point", "centre").returncode == 0
    assert run("show", "boxes", "--point", "centre").returncode == 0
    assert run("convert", "boxes", "out", "--point", "centre").returncode == 0
    assert json.loads((tmp_path / "out/manifest.jsonl").read_text())["points"] == [[20, 0]]
    assert run("show", "boxes", "--point", "foot").returncode == 2


def test_brackets_in_the_name_of_a_split_and_dots_in_that_of_a_folder_are_kept(run, good, tmp_path):
    lines = (good / "manifest.jsonl").read_text().replace("train", "[/] [red]day")
    (good / "manifest.jsonl").write_text(lines)
    good.rename(tmp_path / "crowds.v2")
    answer = run("show", "crowds.v2")
    assert answer.returncode == 0, answer.stderr
    assert "[/] [red]day" in answer.stdout
    assert answer.stdout.splitlines()[-1] == "contact sheet: runs/data-show/crowds.v2-1/contact_sheet.html"


@pytest.mark.parametrize("command", [("check", "good", "--out"), ("show", "good", "--out"), ("convert", "good")])
def test_a_file_where_the_results_are_to_go_is_named(run, good, tmp_path, command):
    (tmp_path / "taken").touch()
    answer = run(*command, "taken")
    assert (answer.returncode, answer.stdout) == (1, "")
    assert "error: taken: this folder cannot be made" in answer.stderr


@pytest.mark.slow
def test_an_interrupted_conversion_leaves_whole_files_and_goes_on(tmp_path):
    draw(tmp_path / "in/0.png", 0)
    pictures = 400
    for number in range(1, pictures):
        shutil.copy(tmp_path / "in/0.png", tmp_path / f"in/{number}.png")
    out = tmp_path / "out"
    command = [*COMMAND, "convert", str(tmp_path / "in"), str(out)]
    process = subprocess.Popen(
        [*command, "--max-side", "150"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A shell that runs the tests in the background has them, and whatever they start, ignore this signal.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        journal = out / "conversion.jsonl"
        while process.poll() is None and not (journal.is_file() and journal.stat().st_size):
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    assert "Traceback" not in errors
    assert not list(out.rglob("*.part"))
    assert not (out / "manifest.jsonl").exists()
    done = [json.loads(line) for line in journal.read_text().splitlines()]
    assert 0 < len(done) < pictures
    assert all((out / each["image"]).stat().st_size == each["bytes"] for each in done)
    again = run_gbdgc("data", "convert", tmp_path / "in", out, "--max-side", "150", folder=tmp_path)
    assert again.returncode == 0
    assert f"{pictures - len(done)} resized or turned, 0 copied, {len(done)} there already" in again.stderr


@pytest.mark.slow
def test_half_a_character_in_a_label_file_is_said_and_breaks_no_page(run, tmp_path):
    folder = write_manifest(tmp_path / "odd", {"a": [[3, 4]], "b": [[1, 2]], "c": [[1, 2]]})
    text = (folder / "manifest.jsonl").read_text()
    text = text.replace('"id": "a"', '"id": "\\ud800x"').replace('"image": "b.png"', '"image": "\\ud800.png"')
    (folder / "manifest.jsonl").write_text(text)
    for command in (("show", folder, "--skip-bad"), ("check", folder)):
        answer = run(*command)
        assert answer.returncode == 1
        assert "Traceback" not in answer.stderr
        assert "its id is not text" in answer.stdout + answer.stderr
        assert "contact sheet: " in answer.stdout


def test_demo_draws_what_the_other_commands_read(run, tmp_path):
    answer = run("demo", tmp_path / "demo", "--images", 5)
    assert answer.returncode == 0
    source, *targets = map(Path, answer.stdout.splitlines())
    assert source == tmp_path / "demo/source"
    assert targets
    assert f"next: gbdgc data show {source}" in answer.stderr
    report = json.loads(run("show", source, "--json").stdout)
    assert {name: split["images"] for name, split in report["splits"].items()} == {"train": 4, "test": 1, "all": 5}


def test_demo_draws_places_with_nobody_in_them(run, tmp_path):
    answer = run("demo", tmp_path / "empty", "--images", 2, "--empty")
    assert answer.stdout.strip() == str(tmp_path / "empty")
    drawn = json.loads(run("show", tmp_path / "empty", "--json").stdout)["splits"]["train"]
    assert (drawn["images"], drawn["heads"]) == (2, 0)


@pytest.mark.parametrize(
    "arguments",
    [
        ("check",),
        ("convert", "only-one"),
        ("show", "x", "--imagse", "3"),
        ("show", "x", "--images", "-1"),
        ("convert", ".", "out", "--quality", "500"),
        ("convert", ".", "out", "--min-side", "0"),
        ("check", ".", "--max-pixels", "-1"),
        ("show", ".", "--max-pixels", "0"),
        ("demo", "x", "--images", "1"),
        ("demo", "x", "--seed", "-1"),
        ("chekc", "x"),
    ],
)
def test_wrong_usage_is_2(run, arguments):
    answer = run(*arguments)
    assert answer.returncode == 2
    assert answer.stdout == ""


@pytest.mark.parametrize("arguments", [("check", "nowhere"), ("show", "nowhere"), ("convert", "nowhere", "out")])
def test_data_that_are_not_there_are_named(run, arguments):
    answer = run(*arguments)
    assert answer.returncode == 1
    assert "nowhere: no such file or folder" in answer.stderr
    assert answer.stdout == ""
