"""What the largest pictures cost the service: processor's seconds, peak of memory, and what stays afterwards.

Run with ``python benchmarks/largest.py [--weights MODEL] [-- OPTIONS OF gbdgc serve]``. For each row a service is
started, and counts a small picture first. Memory is that of the process that counts and of the one that decodes, added
up; seconds are those of the processor, which other programs do not lengthen, and of the clock.
"""

import argparse
import os
import subprocess
import sys
import time
from io import BytesIO
from pathlib import Path

import httpx
import numpy as np
from PIL import Image

PNG, TIFF = {"format": "PNG", "compress_level": 9}, {"format": "TIFF", "compression": "tiff_adobe_deflate"}
TICKS = os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--weights", help="as for gbdgc serve")
    parser.add_argument("--only", type=int, nargs="+", help="rows, from 1")
    parser.add_argument("options", nargs="*", help="of gbdgc serve, behind --")
    given = parser.parse_args()
    options = [*given.options, *(["--weights", given.weights] if given.weights else [])]
    print("| picture | bytes | answer | processor, s | clock, s | peak, MB | stays, MB |")
    print("|---|--:|---|--:|--:|--:|--:|")
    for number, (name, content) in enumerate(pictures().items(), start=1):
        if given.only is None or number in given.only:
            print(f"| {name} | {len(content):,} | {cost(content, options)} |", flush=True)


def pictures() -> dict[str, bytes]:
    """Return pictures that are small as files and large in memory, over the limit and at it, and one large as both."""
    street = Image.effect_noise((900, 600), 60).convert("RGB")
    rough = np.random.default_rng(0).integers(0, 256, (1000, 1000, 3), dtype=np.uint8)
    return {
        "PNG, 49 megapixels": encoded(Image.new("1", (7000, 7000)), **PNG),
        "PNG, 16 megapixels": encoded(Image.new("1", (4000, 4000)), **PNG),
        "PNG with alpha, 16 megapixels": encoded(Image.new("RGBA", (4000, 4000), (1, 2, 3, 4)), **PNG),
        "PNG, one pixel high, 16 megapixels": encoded(Image.new("1", (16_000_000, 1)), **PNG),
        "TIFF of floats, 49 megapixels": encoded(Image.new("F", (7000, 7000), 0.5), **TIFF),
        "TIFF of floats, 16 megapixels": encoded(Image.new("F", (4000, 4000), 0.5), **TIFF),
        "JPEG, 16 megapixels": encoded(street.resize((4900, 3265)), format="JPEG"),
        "JPEG, progressive CMYK, 16 megapixels": encoded(
            street.convert("CMYK").resize((4900, 3265)), format="JPEG", progressive=True
        ),
        "JPEG of noise, 16 megapixels": encoded(Image.fromarray(np.tile(rough, (4, 4, 1))), format="JPEG", quality=80),
    }


def encoded(image: Image.Image, **options: object) -> bytes:
    file = BytesIO()
    image.save(file, **options)
    return file.getvalue()


def cost(content: bytes, options: list[str]) -> str:
    """Return the cells of a row."""
    command = [sys.executable, "-m", "gbdgc", "serve", "--port", "0", *options]
    service = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert service.stdout is not None
    url = service.stdout.readline().strip()
    small = encoded(Image.effect_noise((640, 480), 60).convert("RGB"), format="JPEG")
    processes = [service.pid]
    try:
        with httpx.Client(base_url=url, timeout=1000) as client:
            client.post("/v1/count", files={"image": small}).raise_for_status()
            processes += children(service.pid)
            for process in processes:
                Path(f"/proc/{process}/clear_refs").write_text("5")  # the mark of the peak begins anew
            before, spent, began = memory(processes, "VmRSS:"), seconds(processes), time.monotonic()
            answer = client.post("/v1/count", files={"image": content})
            clock = time.monotonic() - began
            verdict = "200" if answer.status_code == 200 else f"{answer.status_code} {answer.json()['error']['code']}"
            time.sleep(1)  # what is given up gives its memory back behind the answer
            peak, after = memory(processes, "VmHWM:"), memory([service.pid, *children(service.pid)], "VmRSS:")
            spent = seconds(processes) - spent
        return f"{verdict} | {spent:.1f} | {clock:.1f} | {peak - before:+,.0f} | {after - before:+,.0f}"
    finally:
        service.terminate()
        service.wait(120)


def children(process: int) -> list[int]:
    """Return the processes that any thread of this one has started."""
    return [int(each) for file in Path(f"/proc/{process}/task").glob("*/children") for each in file.read_text().split()]


def memory(processes: list[int], figure: str) -> float:
    """Megabytes of those processes that are still there."""
    files = [Path(f"/proc/{process}/status") for process in processes]
    return sum(int(file.read_text().split(figure)[1].split()[0]) / 1000 for file in files if file.exists())


def seconds(processes: list[int]) -> float:
    """Seconds that the processes have kept a core busy."""
    files = [Path(f"/proc/{process}/stat") for process in processes]
    fields = [file.read_text().rpartition(")")[2].split() for file in files if file.exists()]
    return sum(int(user) + int(system) for *_, user, system in (row[:13] for row in fields)) / TICKS


if __name__ == "__main__":
    main()
