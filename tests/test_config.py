"""Settings: typed, and kind about mistakes."""

from pathlib import Path

import pytest

from gbdgc.config import Config, find_config, load_config, presets, save_config
from gbdgc.errors import InputError, UsageError
from gbdgc.training.state import choose_partition


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "run.yaml"
    path.write_text("name: mine\ndata:\n  source: [crowds]\n")
    return path


def test_overrides_win_over_the_file_and_the_file_over_defaults(file: Path) -> None:
    config = load_config(file, ["train.epochs=5", "discovery.descriptors=online", "augmentation.scale=[0.5,2.0]"])
    assert (config.train.epochs, config.discovery.descriptors, config.augmentation.scale) == (5, "online", [0.5, 2.0])
    assert config.data.source == ["crowds"]
    assert config.train.batch_size == 32


def test_one_source_needs_no_brackets(file: Path) -> None:
    assert load_config(file, ["data.source=elsewhere"]).data.source == ["elsewhere"]


def test_what_is_saved_is_what_is_read(file: Path, tmp_path: Path) -> None:
    config = load_config(file, ["model.options.frozen_statistics=false", "train.clip_norm=1"])
    save_config(config, tmp_path / "again.yaml")
    assert load_config(tmp_path / "again.yaml") == config


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("train.epoch=5", r"no setting 'train.epoch'; did you mean train.epochs\?"),
        ("trian.epochs=5", r"did you mean train.epochs\?"),
        ("train.epochs=five", r"^train.epochs=five: Value 'five'"),
        ("discovery.mode=stabel", r"discovery.mode.*expected one of \['paper', 'stable'\]"),
        ("epochs", r"'epochs' is not an override; write key.sub=value"),
    ],
)
def test_a_mistake_is_named_with_what_was_meant(file: Path, override: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        load_config(file, [override])


def test_a_file_that_is_no_yaml_or_misses_its_name_says_so(tmp_path: Path) -> None:
    for text in ("a: [1, 2", "a: ${b", "[1, 2]"):
        (tmp_path / "bad.yaml").write_text(text)
        with pytest.raises(InputError, match=r"bad\.yaml"):
            load_config(tmp_path / "bad.yaml")
    with pytest.raises(InputError, match="demo"):
        load_config("demo", ["data.source=[a"])
    (tmp_path / "nameless.yaml").write_text("data: {source: a}")
    with pytest.raises(InputError, match=r"nameless\.yaml: name: missing; write one, such as name: mine"):
        load_config(tmp_path / "nameless.yaml")


def test_an_override_that_is_a_mapping_replaces_the_presets() -> None:
    assert load_config("compact_sha").model.options == {"frozen_blocks": 3}
    assert load_config("compact_sha", ["model.options={}"]).model.options == {}
    assert load_config("compact_sha", ["model.options.frozen_blocks=1"]).model.options == {"frozen_blocks": 1}


def test_presets_are_found_by_name_and_a_misspelt_one_is_met_with_the_right_one() -> None:
    assert find_config("compact_sha").name == "compact_sha.yaml"
    with pytest.raises(InputError, match=r"compact_shaa: no such file.*did you mean compact_sha\?"):
        find_config("compact_shaa")


@pytest.mark.parametrize(
    "name",
    ["sha", "shb", "qnrf", "sha_shb", "compact_sha", "compact_shb", "compact_sha_shb", "bundled", "demo", "tune"],
)
def test_every_preset_loads(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GBDGC_DATA", "/somewhere")
    assert name in presets()
    config = load_config(name)
    assert isinstance(config, Config)
    assert config.name == name
    assert name in {"demo", "tune"} or all(source.startswith("/somewhere/") for source in config.data.source)


@pytest.mark.parametrize(("name", "k"), [("sha", 4), ("shb", 3), ("qnrf", 6), ("sha_shb", 5)])
def test_the_papers_presets_are_the_papers(name: str, k: int) -> None:
    config = load_config(name)
    train = config.train
    assert (train.epochs, train.batch_size, train.optimizer, train.selection) == (200, 32, "adam", "last")
    assert (train.learning_rate, train.weight_decay) == (1e-5, 1e-4)
    assert (config.augmentation.crop, config.augmentation.flip, config.data.validation) == (320, 0.5, 0)
    balls = choose_partition(config).get_params()
    assert (balls["n_domains"], balls["n_components"], balls["split_margin"], balls["mode"]) == (k, 256, 1.05, "paper")
    assert (config.model.backbone, config.model.dim, config.model.codewords) == ("vgg16", 256, 1024)


@pytest.mark.parametrize("depth", [800, 5000])
@pytest.mark.parametrize("place", ["model: {options: {a: %s}}", "data: {source: %s}", "train: %s"])
def test_a_file_nested_too_deep_is_named(file: Path, depth: int, place: str) -> None:
    for nest in ("[" * depth + "]" * depth, "{a: " * depth + "1" + "}" * depth):
        file.write_text("name: mine\n" + place % nest)
        with pytest.raises(InputError, match=r"run\.yaml: "):
            load_config(file)


def test_aliases_that_double_at_each_step_are_refused(file: Path) -> None:
    lines = [f"a{level}: &a{level} [*a{level - 1}, *a{level - 1}]" for level in range(1, 40)]
    file.write_text("\n".join(["a0: &a0 [1, 1]", *lines]))
    with pytest.raises(InputError, match=r"run\.yaml: "):
        load_config(file)
