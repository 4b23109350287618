"""What each way to install the package can do, and what the files that build and ship it promise."""

import json
import re
import subprocess
import sys
import tomllib
from importlib.util import module_from_spec, spec_from_file_location
from itertools import chain
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from in_process import run_gbdgc

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
DOCKERFILE = (ROOT / "Dockerfile").read_text()

# An import hook, as None in sys.modules would not stop a library that asks whether there is a torch.
WITHOUT_TORCH = """
import sys
class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"torch", "lightning_fabric"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, NoTorch())
"""


NEEDED = r'(torch|lightning_fabric) is not installed; pip install "gbdgc\[torch\]"'


def run_without_torch(program: str, *arguments: object, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", WITHOUT_TORCH + program, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=folder)


def test_the_plain_package_needs_no_torch() -> None:
    names = {re.match(r"[\w-]+", each)[0] for each in PROJECT["dependencies"]}
    assert {"numpy", "scipy", "scikit-learn", "numba"} <= names
    assert not names & {"torch", "lightning-fabric", "onnxruntime", "openvino", "fastapi"}
    extras = PROJECT["optional-dependencies"]
    assert any(each.startswith("torch") for each in extras["torch"])
    assert [each.partition(">")[0] for each in extras["onnx"]] == ["onnxruntime"]
    everything = extras["all"][0].partition("[")[2].rstrip("]").split(",")
    assert sorted(everything) == sorted(extras.keys() - {"all"})


def test_every_package_that_is_asked_for_has_its_tested_version() -> None:
    pinned = {line.partition("==")[0].lower().replace("_", "-") for line in (ROOT / "constraints.txt").open()}
    asked = list(chain(PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()))
    names = {re.match(r"[\w-]+", each)[0].lower() for each in asked} - {"gbdgc"}
    assert names <= pinned


def test_discovery_and_help_work_without_torch(tmp_path: Path) -> None:
    program = (
        "import gbdgc, numpy\n"
        "print(gbdgc.GranularBallDomains(n_domains=2).fit(numpy.arange(20.0).reshape(10, 2)).n_domains_)\n"
        "from gbdgc.cli import main\nmain()\n"
    )
    answer = run_without_torch(program, "--help", folder=tmp_path)
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.startswith("2\n")
    assert "Usage: gbdgc" in answer.stdout


@pytest.mark.slow
def test_the_service_answers_by_onnxruntime_alone(exports: dict[str, Path], tmp_path: Path) -> None:
    program = (
        "import gbdgc, httpx\n"
        "from gbdgc.server import create_app\n"
        "from fastapi.testclient import TestClient\n"
        "with TestClient(create_app(gbdgc.Counter.load(sys.argv[1]))) as client:\n"
        "    print(client.post('/v1/count', files={'image': open(sys.argv[2], 'rb')}).json()['count'])\n"
        "assert 'torch' not in sys.modules\n"
    )
    answer = run_without_torch(program, exports["m.onnx"], ROOT / "docs" / "plaza.jpg", folder=tmp_path)
    assert answer.returncode == 0, answer.stderr
    assert float(answer.stdout) > 0


@pytest.mark.parametrize("command", [("train", "demo"), ("count", "a.png")])
def test_a_command_that_needs_torch_names_the_extra(tmp_path: Path, command: tuple[str, ...]) -> None:
    (tmp_path / "a.png").touch()
    answer = run_without_torch("from gbdgc.cli import main\nmain()\n", *command, folder=tmp_path)
    assert (answer.returncode, answer.stdout) == (1, "")
    assert re.fullmatch(rf"error: {NEEDED}\n", answer.stderr)


def test_a_name_that_needs_torch_names_the_extra(tmp_path: Path) -> None:
    answer = run_without_torch("from gbdgc import train\n", folder=tmp_path)
    assert re.fullmatch(rf"ImportError: gbdgc\.train: {NEEDED}", answer.stderr.splitlines()[-1])


def test_another_missing_module_is_a_bug_and_not_an_extra(tmp_path: Path) -> None:
    program = "sys.modules['scipy'] = None\nfrom gbdgc import GranularBallDomains\n"
    last = run_without_torch(program, folder=tmp_path).stderr.splitlines()[-1]
    assert last.startswith("ModuleNotFoundError: ")
    assert "scipy" in last


@pytest.fixture(scope="module")
def build_hook() -> ModuleType:
    pytest.importorskip("hatchling", reason="the build backend is not installed")
    spec = spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_links_of_a_release_lead_out_of_the_readme(build_hook: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GBDGC_REPOSITORY", "https://example.org/crowds/")
    metadata = {"version": "1.2.3"}
    build_hook.CustomMetadataHook(str(ROOT), {}).update(metadata)
    text = metadata["readme"]["text"]
    links = re.findall(r"\]\(([^)]+)\)", text)
    assert all(link.startswith(("https://", "#")) for link in links)
    assert "](https://example.org/crowds/blob/v1.2.3/docs/deployment.md#faster)" in text
    assert "](https://example.org/crowds/raw/v1.2.3/docs/plaza-counted.jpg)" in text
    assert metadata["urls"]["Repository"] == "https://example.org/crowds"


def test_without_an_address_none_is_made_up(build_hook: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GBDGC_REPOSITORY", raising=False)
    metadata = {"version": "1.2.3"}
    build_hook.CustomMetadataHook(str(ROOT), {}).update(metadata)
    assert metadata["urls"] == {}
    assert metadata["readme"]["text"] == (ROOT / "README.md").read_text()


def test_the_version_is_the_same_wherever_it_stands() -> None:
    from gbdgc import __version__

    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == __version__
    assert re.search(rf"^## {re.escape(__version__)} ", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)


def instructions() -> list[tuple[str, str]]:
    """The Dockerfile as (instruction, arguments)."""
    lines = re.sub(r"\\\n", " ", re.sub(r"^#.*\n", "", DOCKERFILE, flags=re.MULTILINE)).splitlines()
    return [(word, rest.strip()) for word, _, rest in (line.strip().partition(" ") for line in lines if line.strip())]


def test_the_image_runs_as_nobody_special_without_torch() -> None:
    parsed = instructions()
    known = {"ARG", "FROM", "ENV", "WORKDIR", "COPY", "RUN", "USER", "EXPOSE", "HEALTHCHECK", "ENTRYPOINT", "CMD"}
    assert {word for word, _ in parsed} <= known
    starts = [number for number, (word, _) in enumerate(parsed) if word == "FROM"]
    assert all("-slim" in parsed[number][1] for number in starts)
    final = parsed[starts[-1] :]
    (install,) = (rest for word, rest in final if word == "RUN")
    assert "[onnx,serve]" in install
    assert "torch" not in install
    (user,) = (rest for word, rest in final if word == "USER")
    assert int(user) > 0


def test_what_the_image_copies_is_there_and_not_ignored() -> None:
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    kept = [line.removeprefix("!") for line in ignored if line.startswith("!")]
    assert ignored[0] == "*"
    assert {"pyproject.toml", "hatch_build.py", "constraints.txt", "configs", "src", "README.md", "LICENSE"} <= set(
        kept
    )
    assert all((ROOT / name).exists() for name in kept)
    (weights,) = re.findall(r"gbdgc export (\S+)", DOCKERFILE)
    assert (ROOT / weights).is_file()


@pytest.mark.parametrize("command", ["export", "serve"])
def test_the_commands_in_the_image_have_the_options_it_gives_them(command: str, tmp_path: Path) -> None:
    (served,) = (" ".join(json.loads(rest)) for word, rest in instructions() if word == "CMD")
    (exported,) = re.findall(r"gbdgc export ([^&\n]+)", DOCKERFILE)
    given = set(re.findall(r"--[\w-]+", served if command == "serve" else exported))
    assert given
    shown = run_gbdgc(command, "--help", folder=tmp_path).stdout
    assert given <= set(re.findall(r"--[\w-]+", shown))


def test_compose_opens_the_port_of_the_image_to_this_machine_only() -> None:
    service = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]["gbdgc"]
    (exposed,) = (rest for word, rest in instructions() if word == "EXPOSE")
    assert service["ports"] == [f"127.0.0.1:{exposed}:{exposed}"]
    assert service["read_only"]
    (writable,) = service["tmpfs"]
    assert all(place.startswith(f"{writable}/") for place in re.findall(r"DIR=(/\S+)", DOCKERFILE))


def test_the_workflow_calls_the_same_targets_as_everyone() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    jobs = yaml.safe_load((ROOT / ".github/workflows/test.yml").read_text())["jobs"]
    called = {step["run"].split()[1] for job in jobs.values() for step in job["steps"] if "run" in step}
    assert {"lint", "test"} <= called <= targets
    assert (ROOT / ".ci/run").read_text().splitlines()[-1] == "exec make test"
