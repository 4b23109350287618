"""The dependency direction: a module may import from the layers below its own, never from beside or above."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "gbdgc"

LAYERS: tuple[tuple[str, ...], ...] = (
    ("errors",),
    ("files", "memory", "shipped"),
    ("published", "domains", "runs", "progress"),
    ("data",),
    ("synthetic", "models", "descriptors"),
    ("methods", "checkpoint"),
    ("config", "counting"),
    ("evaluation",),
    ("training",),
    ("benchmark",),
    ("report", "server", "cluster"),
    ("demo", "cli"),
)
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
ENTRANCES = {"__init__", "__main__"}
"""The package's own doors: `gbdgc` finds everything by name, lazily; `python -m gbdgc` is the command line."""

MODULES = sorted(SOURCE.rglob("*.py"))


def part_of(path: Path) -> str:
    """The top-level part a file belongs to: domains/balls.py is of `domains`."""
    return path.relative_to(SOURCE).with_suffix("").parts[0]


def imported_modules(path: Path) -> Iterator[str]:
    """Every module a file imports anywhere, also inside functions, by its full name."""
    package = ("gbdgc", *path.relative_to(SOURCE).parts[:-1])
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parents = package[: len(package) - node.level + 1] if node.level else ()
            base = ".".join((*parents, *((node.module,) if node.module else ())))
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names if base == "gbdgc")


def parts_used(path: Path) -> set[str]:
    names = (name.split(".") for name in imported_modules(path))
    return {name[1] for name in names if name[0] == "gbdgc" and len(name) > 1} - {"__version__"}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_module_knows_only_the_layers_below_its_own(path: Path) -> None:
    part = part_of(path)
    if part in ENTRANCES:
        return
    assert part in LEVEL, f"{part} has no place in the layers: give it one"
    forbidden = {used for used in parts_used(path) if used != part and LEVEL.get(used, len(LAYERS)) >= LEVEL[part]}
    assert not forbidden, f"{path.name} must not import {sorted(forbidden)}"


def test_contributing_draws_the_same_layers_and_every_part_of_the_tree() -> None:
    page = (SOURCE.parents[1] / "CONTRIBUTING.md").read_text()
    rows = re.findall(r"^\| (?:commands|pipelines|components|core) \| (.*) \|$", page, re.MULTILINE)
    drawn = [set(re.findall(r"`(\w+)`", step)) for row in reversed(rows) for step in row.split(" then ")]
    assert drawn == [set(names) for names in LAYERS]
    tree = page.split("src/gbdgc/\n")[1].split("```")[0]
    assert not [name for name in LEVEL if not re.search(rf"\b{name}(/|\.py)", tree)]


@pytest.mark.parametrize("path", [p for p in MODULES if part_of(p) == "domains"], ids=lambda path: path.name)
def test_discovery_never_imports_torch(path: Path) -> None:
    assert not [name for name in imported_modules(path) if name.split(".")[0] in {"torch", "lightning_fabric"}]


TORCH_ENGINE = {"engines.py", "graph.py", "export.py"}
"""The modules of `counting` that may import torch or what needs it; engines.py does so inside functions only."""
NEEDS_TORCH = {"torch", "gbdgc.checkpoint", "gbdgc.descriptors", "gbdgc.models", "gbdgc.counting.export"}


@pytest.mark.parametrize("path", [p for p in MODULES if part_of(p) == "counting"], ids=lambda path: path.name)
def test_counting_without_torch_is_possible(path: Path) -> None:
    if path.name not in TORCH_ENGINE | {"counter.py"}:  # it exports a model on demand
        found = {name for name in imported_modules(path) if any(f"{name}.".startswith(f"{t}.") for t in NEEDS_TORCH)}
        assert not found


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_only_the_conductors_see_the_config(path: Path) -> None:
    if "config" in parts_used(path):
        assert part_of(path) in {"training", "benchmark", "cli", "demo"}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_only_commands_change_the_whole_process(path: Path) -> None:
    if "memory" in parts_used(path):
        assert part_of(path) in {"cli", "demo", "server"}


def test_there_is_no_drawer_for_odds_and_ends() -> None:
    assert not [path for path in MODULES if path.stem in {"utils", "misc", "helpers", "common"}]
