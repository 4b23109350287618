"""What an adversary, a power cut and a full disk do to gbdgc: a table of what was tried and what failed.

Run with ``python benchmarks/endurance.py [--minutes 10] [--share 1.0] [--only PART ...]``. Everything happens on this
machine, over loopback, in a temporary folder. Each part stops at its share of the time that is left, so that the column
"tried" says how far it came; the goal of the column "failed" is zero. ``--only PART`` runs a part alone.
Read-only folders and full disks are mounts in a namespace of their own (Linux, ``unshare``).
"""

import argparse
import json
import multiprocessing
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

import httpx
import numpy as np
from PIL import Image
from scipy.io import savemat

from gbdgc import checkpoint
from gbdgc.data import READERS, load_dataset
from gbdgc.data.decoding import Decoder
from gbdgc.errors import InputError
from gbdgc.synthetic import SOURCE_DOMAINS, draw_scene

GBDGC = (sys.executable, "-m", "gbdgc")
QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
SLOW_SECONDS = 10.0
CPU_SECONDS, HANGING_SECONDS = 240, 1800
CLIENTS = 64
TINY = """
name: endurance
data: {source: [SOURCE], validation: 0.25, workers: 1}
augmentation: {crop: 64}
model: {backbone: compact, pretrained: false, dim: 16, codewords: 32}
discovery: {n_domains: 2, image_size: 64}
train: {epochs: 2, batch_size: 4, selection: validation, checkpoint_seconds: 0.2}
"""


class Budget(NamedTuple):
    """How much of one part to do, and for how long."""

    number: int
    seconds: float
    until: float = 0.0

    def from_now(self) -> "Budget":
        """Begin: setting up does not count."""
        return self._replace(until=time.monotonic() + self.seconds)

    def rounds(self) -> Iterator[int]:
        """Yield numbers until all are done or the time is up."""
        for index in range(self.number):
            if time.monotonic() > self.until:
                return
            yield index


class Outcome(NamedTuple):
    """A row of the table."""

    tried: int
    failures: list[str]


def main() -> None:
    """Run the parts and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10.0, help="for all parts together")
    parser.add_argument("--share", type=float, default=1.0, help="of the full numbers to try")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), help="parts to run")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    random.seed(options.seed)
    until = time.monotonic() + 60 * options.minutes
    rows: dict[str, Outcome] = {}
    with tempfile.TemporaryDirectory(prefix="endurance-") as folder:
        for index, name in enumerate(options.only):
            part = PARTS[name]
            # What the parts before did not need is for those that follow.
            share = part.weight / sum(PARTS[each].weight for each in options.only[index:])
            seconds = share * max(0.0, until - time.monotonic())
            budget = Budget(max(1, round(options.share * part.number)), seconds)
            place = Path(folder, name)
            place.mkdir()
            rows[name] = part.run(place, budget)
            print(f"{name}: {rows[name].tried} tried, {len(rows[name].failures)} failed", file=sys.stderr, flush=True)
    print("| what | of | tried | failed |\n|---|---|---|---|")
    for name, outcome in rows.items():
        print(f"| {PARTS[name].title} | {PARTS[name].number:,} | {outcome.tried:,} | {len(outcome.failures):,} |")
    for name, outcome in rows.items():
        for failure in outcome.failures[:10]:
            print(f"{name}: {failure}", file=sys.stderr)
    sys.exit(any(outcome.failures or not outcome.tried for outcome in rows.values()))


def corrupted(content: bytes, dice: random.Random) -> bytes:
    """Damage a file as disks, networks and strangers do: bytes changed, cut off, doubled, put elsewhere."""
    damaged = bytearray(content)
    for _ in range(dice.choice((1, 1, 2, 8, 64))):
        at, to = sorted(dice.randrange(len(damaged) + 1) for _ in range(2))
        match dice.randrange(5):
            case 0 if damaged:
                damaged[min(at, len(damaged) - 1)] = dice.randrange(256)
            case 1 if at:
                del damaged[at:]
            case 2:
                damaged[at:at] = damaged[at : min(to, at + 4096)]
            case 3:
                damaged[at : at + 8] = dice.randbytes(8)
            case _:
                damaged[at : min(to, at + 512)] = bytes(min(to, at + 512) - at)
    return bytes(damaged)


def corrupt_pictures(_: Path, budget: Budget) -> Outcome:
    """A picture of any format, damaged, is decoded or refused, in a few seconds."""
    dice = random.Random(1)
    whole = list(pictures())
    decoder, failures, tried = Decoder(16_000_000, reduce_to=1600), [], 0
    decoder.warm_up()
    budget = budget.from_now()

    for index in budget.rounds():
        tried += 1
        began = time.monotonic()

        def check(began: float = began) -> None:
            if time.monotonic() - began > SLOW_SECONDS:
                raise TimeoutError

        try:
            decoder.read(corrupted(whole[index % len(whole)], dice), check)
        except InputError as error:
            if "broke down" in str(error):
                failures.append(f"picture {index}: {error}")
        except Exception as error:
            failures.append(f"picture {index}: {error!r}")
    decoder.close()
    return Outcome(tried, failures)


def pictures() -> Iterator[bytes]:
    """Yield a drawn scene in every format and mode that strangers send."""
    scene = Image.fromarray(draw_scene(SOURCE_DOMAINS[0], np.random.default_rng(0), (160, 128))[0])
    kinds = [("JPEG", "RGB"), ("JPEG", "CMYK"), ("PNG", "RGBA"), ("PNG", "I;16"), ("WEBP", "RGB"), ("BMP", "RGB")]
    kinds += [("TIFF", "RGB"), ("TIFF", "F"), ("GIF", "P"), ("PPM", "RGB")]
    for kind, mode in kinds:
        file = BytesIO()
        (scene.convert("L").convert(mode) if mode in {"F", "I;16"} else scene.convert(mode)).save(file, kind)
        yield file.getvalue()
    for options in (
        {"progressive": True},
        {"exif": b"Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0"},
    ):
        file = BytesIO()
        scene.save(file, "JPEG", **options)
        yield file.getvalue()


def damage_labels(place: Path, budget: Budget) -> Outcome:
    """A damaged label file of any format gives samples or says what is wrong, in a few seconds."""
    dice, failures, tried = random.Random(2), [], 0
    layouts = {name: write_labels(place / name, name) for name in READERS if name != "folder"}
    for name, (root, file) in layouts.items():
        load_dataset(root, name)  # whole, it can be read
        layouts[name] = root, file
    (place / "folder").mkdir()
    budget = budget.from_now()
    for index in budget.rounds():
        tried += 1
        name = list(READERS)[index % len(READERS)]
        if name == "folder":  # has no labels: a picture is damaged instead
            root, file, whole = place / "folder", place / "folder/a.png", next(pictures())
        else:
            root, file = layouts[name]
            whole = file.read_bytes()
        began = time.monotonic()
        try:
            file.write_bytes(corrupted(whole, dice))
            load_dataset(root, name, skip_bad=bool(index % 2))
        except InputError:
            pass
        except Exception:
            failures.append(f"{name} {index}: {traceback.format_exc().splitlines()[-1]}")
        finally:
            if name != "folder":
                file.write_bytes(whole)
        if time.monotonic() - began > SLOW_SECONDS:
            failures.append(f"{name} {index}: took {time.monotonic() - began:.0f} seconds")
    return Outcome(tried, failures)


def write_labels(root: Path, name: str) -> tuple[Path, Path]:
    """Write a small data set and return its root and the file with its labels."""

    def picture(path: str) -> None:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (64, 48), "grey").save(root / path)

    def text(path: str, content: str) -> Path:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(content)
        return root / path

    def mat(path: str, **variables: object) -> Path:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        savemat(root / path, variables)
        return root / path

    points = np.array([[5.5, 6.0], [30.0, 20.0]])
    if name == "manifest":
        picture("a.png")
        row = {"id": "a", "image": "a.png", "width": 64, "height": 48, "points": points.tolist()}
        return root, text("manifest.jsonl", json.dumps(row) + "\n")
    if name == "shanghaitech":
        picture("train_data/images/IMG_1.jpg")
        cell = np.empty((1, 1), dtype=object)
        cell[0, 0] = {"location": points, "number": np.array([[2]])}
        return root, mat("train_data/ground-truth/GT_IMG_1.mat", image_info=cell)
    if name == "nwpu":
        picture("images/0001.jpg")
        text("train.txt", "0001 1 0\n")
        return root, mat("mats/0001.mat", annPoints=points, annBoxes=np.ones((2, 4)))
    if name == "jhu":
        picture("train/images/0001.jpg")
        text("train/image_labels.txt", "0001,2,stadium,3,0\n")
        return root, text("train/gt/0001.txt", "10 20 5 6 1 0\n30 40 7 8 2 1\n")
    if name == "qnrf":
        picture("Train/img_0001.jpg")
        return root, mat("Train/img_0001_ann.mat", annPoints=points)
    if name == "ucf_cc_50":
        picture("1.jpg")
        return root, mat("1_ann.mat", annPoints=points)
    if name == "cvat":
        picture("images/a.jpg")
        shapes = '<points label="head" points="1.5,2.25;30,40"/>'
        image = f'<image id="0" name="a.jpg" width="64" height="48">{shapes}</image>'
        return root, text("annotations.xml", f"<annotations><version>1.1</version>{image}</annotations>")
    picture("a.jpg")
    if name == "coco":
        people = [{"id": 1, "image_id": 1, "category_id": 1, "bbox": [1, 2, 3, 4]}]
        images = [{"id": 1, "file_name": "a.jpg", "width": 64, "height": 48}]
        content = {"images": images, "annotations": people, "categories": [{"id": 1, "name": "person"}]}
        return root, text("labels.json", json.dumps(content))
    if name == "label_studio":
        value = {"x": 50, "y": 25, "width": 0.5, "keypointlabels": ["head"]}
        head = {"type": "keypointlabels", "original_width": 64, "original_height": 48, "value": value}
        task = {"id": 1, "annotations": [{"id": 1, "result": [head]}], "data": {"image": "a.jpg"}}
        return root, text("project.json", json.dumps([task]))
    assert name == "csv", f"no example of {name} here: add one"
    return root, text("points.csv", "image,x,y\na.jpg,1.5,2\na.jpg,3,4\n")


def write_crowd(place: Path) -> Path:
    """Write sixteen labelled pictures and the settings of a training that takes seconds; return the settings."""
    dice, lines = np.random.default_rng(0), []
    (place / "crowd").mkdir(parents=True)
    for number in range(16):
        points = dice.uniform(4, 92, (6 + 24 * (number % 2), 2))
        image = np.full((96, 112, 3), 60 + 130 * (number % 2), dtype=np.uint8)
        for x, y in points.astype(int):
            image[y - 2 : y + 3, x - 2 : x + 3] = 230
        Image.fromarray(image).save(place / f"crowd/{number:02d}.png")
        row = {"id": str(number), "image": f"{number:02d}.png", "width": 112, "height": 96, "points": points.tolist()}
        lines.append(json.dumps(row | {"split": "train"}))
    (place / "crowd/manifest.jsonl").write_text("\n".join(lines) + "\n")
    settings = place / "tiny.yaml"
    settings.write_text(TINY.replace("SOURCE", str(place / "crowd/manifest.jsonl")))
    return settings


def kill_trainings(place: Path, budget: Budget) -> Outcome:
    """A training that is killed at any moment goes on to the bits of one that never was."""
    # Once, here: a process forked from this one trains at once.
    import numba

    import gbdgc.training  # noqa: F401

    numba.njit(lambda: 0)()  # by the first kernel it loads all it knows of types, for seconds

    settings, dice, failures, kills = write_crowd(place), random.Random(3), [], 0
    epochs = 8
    begin = partial(start_training, settings, epochs)
    first = begin(place / "whole")
    wait_for_change(place / "whole/checkpoints" / checkpoint.LAST, first)
    began = time.monotonic()  # not before: the first step may wait for kernels to be compiled
    first.join()
    if first.exitcode:
        raise RuntimeError((place / "whole.log").read_text())
    an_epoch = (time.monotonic() - began) / epochs
    whole, attempt, resumed_within = state_of(place / "whole"), 0, 0
    budget = budget.from_now()
    while kills < budget.number and time.monotonic() < budget.until:
        folder = place / f"killed-{attempt}"
        newest = folder / "checkpoints" / checkpoint.LAST
        attempt += 1
        for number in range(epochs - 1):
            if kills >= budget.number or time.monotonic() > budget.until:
                break
            process = begin(folder)
            if number or dice.random() < 0.5:  # most of them after a checkpoint, which is mostly one within an epoch
                wait_for_change(newest, process)
            process.join(dice.uniform(0, an_epoch if number else 2 * an_epoch))
            process.kill()
            process.join()
            if process.exitcode != -signal.SIGKILL:  # it came to its end before
                break
            kills += 1
            resumed_within += newest.exists() and checkpoint.read(newest)[1]["step"] > 0
        last = begin(folder)
        last.join()
        if last.exitcode:
            failures.append(f"run {attempt}: {folder.with_suffix('.log').read_text()[-300:]}")
        elif state_of(folder) != whole:
            failures.append(f"run {attempt}: resumed to other bits")
        shutil.rmtree(folder)
    print(f"kills: {resumed_within} of {kills} resumed from a checkpoint within an epoch", file=sys.stderr)
    return Outcome(kills, failures)


def start_training(settings: Path, epochs: int, folder: Path) -> multiprocessing.Process:
    """Start or resume a training in a process of its own."""
    process = multiprocessing.get_context("fork").Process(target=train_quietly, args=(settings, epochs, folder))
    process.start()
    return process


def train_quietly(settings: Path, epochs: int, folder: Path) -> None:
    from gbdgc.training import train

    log = os.open(folder.with_suffix(".log"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(log, sys.stderr.fileno())
    train(settings, [f"train.epochs={epochs}"], folder=folder, resume="auto")


def wait_for_change(path: Path, process: multiprocessing.Process) -> None:
    before = path.stat().st_mtime_ns if path.exists() else 0
    while process.is_alive() and (path.stat().st_mtime_ns if path.exists() else 0) == before:
        time.sleep(0.02)


def state_of(run: Path) -> dict[str, bytes]:
    tensors, _ = checkpoint.read(run / "checkpoints" / checkpoint.LAST)
    return {name: tensor.numpy().tobytes() for name, tensor in tensors.items()}


class Service:
    """A server in a process of its own on a fixed port, that can be killed and started again."""

    def __init__(self, place: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as probe:
            self.address: tuple[str, int] = probe.getsockname()
        self.url = f"http://127.0.0.1:{self.address[1]}"
        self.log = (place / "log.txt").open("w+b")
        self.start()

    def start(self) -> None:
        command = [*GBDGC, "serve", "--port", str(self.address[1]), "--threads", "1", "--timeout", "20"]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=self.log)
        for _ in range(1200):
            with suppress(httpx.HTTPError):
                if httpx.get(f"{self.url}/v1/health", timeout=5).status_code == 200:
                    return
            time.sleep(0.1)
        raise RuntimeError("the service did not start")

    def stop(self) -> str:
        self.process.terminate()
        self.process.wait(90)
        self.log.seek(0)
        return self.log.read().decode(errors="replace")


def storm(place: Path, budget: Budget) -> Outcome:
    """Of 64 clients a tenth are hostile; the others are answered, through a kill and a new start of the server."""
    good = next(pictures())
    service = Service(place)
    budget = budget.from_now()
    failures: list[str] = []
    restarting, lock, done = threading.Event(), threading.Lock(), Counter[str]()
    restart_at = budget.number // 2
    # A connection for each request, as from many clients; one client, as each would read the certificates anew.
    client = httpx.Client(base_url=service.url, timeout=60, limits=httpx.Limits(max_keepalive_connections=0))

    def ask(index: int) -> None:
        if time.monotonic() > budget.until:
            return
        dice = random.Random(index)
        try:
            if dice.random() < 0.1:
                attack(service.address, dice, good)
                verdict = "hostile"
            elif dice.random() < 0.05:
                answer = client.post("/v1/count", files={"image": good})
                verdict = "count" if answer.status_code in {200, 503} else f"count answered {answer.status_code}"
            else:
                path = dice.choice(("/v1/health", "/v1/health", "/v1/model", "/metrics", "/"))
                status = client.get(path).status_code
                verdict = "asked" if status == 200 else f"{path} answered {status}"
        except httpx.HTTPError as error:
            if restarting.is_set():  # cut off, or nobody there: ask again when the server is back
                while restarting.is_set():
                    time.sleep(0.1)
                ask(index)
                return
            verdict = repr(error)
        with lock:
            done[verdict] += 1
            if verdict not in {"hostile", "count", "asked"}:
                failures.append(f"request {index}: {verdict}")

    def kill_and_start() -> None:
        while sum(done.values()) < restart_at:
            if time.monotonic() > budget.until:
                return
            time.sleep(0.05)
        restarting.set()
        service.process.send_signal(signal.SIGKILL)
        service.process.wait()
        service.start()
        time.sleep(2)
        restarting.clear()

    killer = threading.Thread(target=kill_and_start)
    killer.start()
    with ThreadPoolExecutor(CLIENTS) as clients:
        list(clients.map(ask, range(budget.number)))
    killer.join()
    log = service.stop()
    failures += ["a traceback in the log"] if "Traceback" in log else []
    failures += [f"the log grew to {len(log):,} bytes"] if len(log) > 2000 * (budget.number + 100) else []
    print(f"storm: {dict(done)}", file=sys.stderr)
    return Outcome(sum(done.values()), failures)


def attack(address: tuple[str, int], dice: random.Random, picture: bytes) -> None:
    """Ask as an adversary would; whatever comes of it, others must be answered."""
    body = b"--b\r\nContent-Disposition: form-data; name=image; filename=a\r\n\r\n" + corrupted(picture, dice)
    head = b"POST /v1/count HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=b\r\n"
    attacks = {
        "silence": b"",
        "half a head": b"GET / HTTP/1.1\r\nHost:",
        "noise": dice.randbytes(400),
        "a long head": b"GET / HTTP/1.1\r\n" + b"X: " + b"y" * 200_000 + b"\r\n\r\n",
        "half a body": head + b"Content-Length: 100000\r\n\r\n" + body[:500],
        "two lengths": head + b"Content-Length: 5\r\nContent-Length: 50\r\n\r\n" + body[:50],
        "a damaged picture": head + b"Content-Length: %d\r\n\r\n" % (len(body) + 9) + body + b"\r\n--b--\r\n",
        "a bad chunk": head + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
    }
    sent = attacks[dice.choice(list(attacks))]
    with suppress(OSError), socket.create_connection(address, timeout=2) as connection:
        connection.sendall(sent)
        connection.settimeout(dice.uniform(0, 2))
        connection.recv(4096)


def bad_disks(place: Path, budget: Budget) -> Outcome:
    """Every command that writes says in one line that it cannot, on a full disk and into a read-only folder."""
    settings = write_crowd(place)
    crowd, picture = place / "crowd/manifest.jsonl", place / "crowd/00.png"
    run = place / "run"
    subprocess.run([*GBDGC, "train", str(settings), "train.epochs=1", "--out", str(run)], check=True, **QUIET)
    model = str(run)
    commands = {
        "count": ["count", str(picture), "--weights", model, "--out", "OUT/count"],
        "train": ["train", str(settings), "train.epochs=1", "--out", "OUT/train"],
        "eval": ["eval", model, str(crowd), "--out", "OUT/eval"],
        "report": ["report", model, "--out", "OUT/report.html"],
        "figure": ["figure", model, "--data", str(crowd), "--split", "all", "--out", "OUT/figure"],
        "tune": ["tune", str(crowd), "--start", model, "--steps", "2", "--out", "OUT/tune"],
        "benchmark": ["benchmark", "within", "--drawn", "--epochs", "1", "--out", "OUT/results", "--runs", "OUT/runs"],
        "export": ["export", model, "--to", "onnx", "--out", "OUT/model.onnx"],
        "cache": ["count", str(picture), "--weights", model, "--engine", "onnx", "--out", str(place / "counted")],
        "convert": ["data", "convert", str(crowd), "OUT/converted"],
        "demo": ["data", "demo", "OUT/demo", "--images", "4"],
        "show": ["data", "show", str(crowd), "--out", "OUT/show"],
        "domains": ["domains", str(place / "crowd"), "--weights", model, "--out", "OUT/domains.csv"],
    }
    failures, tried = [], 0
    budget = budget.from_now()
    cases = [(kind, name) for kind in ("full", "read-only") for name in commands]
    for index in budget.rounds():
        if index >= len(cases):
            break
        kind, name = cases[index]
        tried += 1
        out = place / f"{kind}-{name}"
        out.mkdir()
        mount = "size=8k" if kind == "full" else "ro"
        command = [*GBDGC, *(part.replace("OUT", str(out)) for part in commands[name])]
        # Bounded by its own work and not by the clock, as other work on the machine may slow it down.
        script = f'ulimit -t {CPU_SECONDS} && mount -t tmpfs -o {mount} none "$0" && exec "$@"'
        try:
            answer = subprocess.run(
                ["unshare", "-rm", "sh", "-c", script, str(out), *command],
                capture_output=True,
                text=True,
                timeout=HANGING_SECONDS,
                env=os.environ | ({"GBDGC_CACHE": str(out)} if name == "cache" else {}),
            )
        except subprocess.TimeoutExpired:
            failures.append(f"{name}, {kind}: not done after {HANGING_SECONDS} seconds")
            continue
        if answer.returncode not in {1, 2} or "Traceback" in answer.stderr:
            failures.append(f"{name}, {kind}: exit {answer.returncode}: {answer.stderr[-300:]}")
    return Outcome(tried, failures)


class Part(NamedTuple):
    """One row of the table: what it is called, how many, its part of the time, and what does it."""

    title: str
    number: int
    weight: float
    run: Callable[[Path, Budget], Outcome]


PARTS = {
    "disks": Part("commands on a full disk and in a read-only folder", 26, 4, bad_disks),
    "pictures": Part("corrupted pictures", 2000, 1, corrupt_pictures),
    "labels": Part("damaged label files, eleven formats", 1000, 1, damage_labels),
    "requests": Part("requests of 64 clients, a tenth hostile, the server killed once", 10_000, 3, storm),
    "kills": Part("trainings killed and resumed to the same bits", 100, 4, kill_trainings),
}

if __name__ == "__main__":
    main()
