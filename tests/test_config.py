"""What a training is told: which word counts when several are said, and what is refused."""

import dataclasses
import re
import tomllib
from pathlib import Path
from typing import get_type_hints

import pytest
import tomli_w
import tyro

from ludus import algos, games
from ludus.algos.alphazero import Config as AlphaZeroConfig
from ludus.algos.ppo import Config as PpoConfig
from ludus.commands.train import parse
from ludus.config import PRESETS, Config, overlay, resolve
from ludus.core.errors import Failure, Usage
from ludus.nets import NetConfig
from ludus.store.run import Run, read_config
from ludus.training.layout import filled
from ludus.training.loop import Audience, train
from ludus.training.opponents import parse_mix


@pytest.fixture
def toml(tmp_path):
    """Write a configuration file; its path."""

    def write(text: str):
        file = tmp_path / "told.toml"
        file.write_text(text)
        return file

    return write


def one_line(error) -> str:
    assert error.type is Usage
    message = str(error.value)
    assert "\n" not in message
    return message


# ---- layers


def test_each_layer_overrides_the_one_below(toml):
    nothing = parse(["tictactoe"])
    own = dataclasses.replace(PpoConfig(), minibatch=512)  # as its presets.toml says
    assert nothing == Config(game="tictactoe", algo="ppo", settings=own)
    preset = parse(["tictactoe", "--preset", "test"])
    assert (preset.rows, preset.steps, preset.net.hidden) == (16, 32, (32,))
    assert preset.settings == dataclasses.replace(PpoConfig(), minibatch=256)
    told = ["tictactoe", "--preset=test", "--config", str(toml("rows = 5\n[ppo]\nclip_range = 0.3"))]
    file = parse(told)
    assert (file.rows, file.steps, file.settings.clip_range, file.settings.minibatch) == (5, 32, 0.3, 256)
    flags = parse([*told, "--rows", "7", "--ppo.clip-range", "0.4", "--net.hidden", "8", "9"])
    assert (flags.rows, flags.steps, flags.net.hidden) == (7, 32, (8, 9))
    assert (flags.settings.clip_range, flags.settings.minibatch) == (0.4, 256)


def test_a_games_own_preset_comes_on_top_of_the_general_one():
    own = games.find("ofc").presets("ofc")
    config = resolve("ofc", "test")
    assert config.steps == own["test"]["steps"] != resolve("tictactoe", "test").steps
    assert config.settings.gamma == own["default"]["ppo"]["gamma"] != PpoConfig().gamma
    assert config.switches == own["default"]["switches"]


def test_environments_begin_with_small_blocks_and_presets_come_on_top():
    plain, test = resolve("gym:CartPole-v1"), resolve("gym:CartPole-v1", "test")
    assert plain.rows * plain.steps <= 2048 and plain.settings.minibatch < PpoConfig().minibatch
    assert (test.rows, test.steps, test.settings.minibatch) == (16, 32, 256)
    assert test.settings.learning_rate == plain.settings.learning_rate != PpoConfig().learning_rate


def test_a_file_may_name_the_preset_and_a_flag_overrides_it(toml):
    file = str(toml('preset = "test"'))
    assert parse(["tictactoe", "--config", file]).rows == 16
    quick = parse(["tictactoe", "--config", file, "--preset", "quick"])
    assert (quick.preset, quick.rows) == ("quick", Config().rows)


def test_switches_are_joined_from_all_layers(toml):
    file = str(toml("[switches]\nseats = 2"))
    config = parse(["ofc", "--config", file, "--set", "jokers=0", "--rows", "3"])
    assert config.switches == {
        **games.find("ofc").presets("ofc")["default"]["switches"],
        "seats": 2,
        "jokers": 0,
    }
    assert config.rows == 3


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("game", [*games.names(), "gym:CartPole-v1"])
def test_every_preset_of_every_game_makes_a_configuration(game, preset):
    config = filled(resolve(game, preset), games.open(game))
    assert (config.game, config.preset) == (game, preset)
    assert config.rows > 0 and config.steps > 0 and config.decisions > 0


def test_numbers_may_be_written_in_any_natural_way(toml):
    config = resolve("tictactoe", None, toml("workers = 3\nseconds = 5\n[net]\nhidden = [8]"))
    assert (config.workers, config.seconds, config.net.hidden) == ("3", 5.0, (8,))
    assert isinstance(config.seconds, float)


def test_a_run_remembers_its_configuration(tmp_path):
    told = {"run": str(tmp_path / "run"), "seed": 4, "switches": {"hands": 2}, "ppo": {"clip_range": 0.1}}
    config = overlay(resolve("ofc", "test"), told, "test")
    run = Run.open(config)
    run.accept()
    run.close()
    assert read_config(tmp_path / "run") == config


# ---- runs of older versions

SCHEMA_1 = """
game = "connect4"
algo = "{algo}"
start = "spawn"
explore = 0.2
[ppo]
gae = 0.1
clip = 0.3
entropy = 0.4
entropy_end = 0.5
value = 0.6
teacher_weight = 0.7
gamma = 0.8
[alphazero]
quick = 1
drawn_moves = 2
reuse = 3.0
replay = 400
replay_least = 5
newer = 0.6
found = 0.7
score_loss = 0.8
owner_loss = 0.9
arena = 10
[alphazero.search]
value_scale = 1.1
exploration = 1.2
first_play = 1.3
[versions]
ludus = "0.1.0"
"""


def old_run(folder: Path, algo: str) -> Path:
    folder.mkdir()
    (folder / "config.toml").write_text(SCHEMA_1.format(algo=algo))
    return folder


def test_settings_of_an_older_run_are_read_under_their_new_names(tmp_path):
    config = read_config(old_run(tmp_path / "ppo", "ppo"))
    assert (config.start_method, config.temperature_spread) == ("spawn", 0.2)
    assert config.settings == PpoConfig(
        gae_lambda=0.1, clip_range=0.3, entropy_coef=0.4, entropy_coef_end=0.5, value_coef=0.6,
        teacher_coef=0.7, gamma=0.8,
    )  # fmt: skip
    config = read_config(old_run(tmp_path / "alphazero", "alphazero"))
    assert config.settings == AlphaZeroConfig(
        fast_simulations=1, sampling_moves=2, replay_ratio=3.0, replay_buffer=400, learning_starts=5,
        recency=0.6, root_value_weight=0.7, score_coef=0.8, ownership_coef=0.9, past_simulations=10,
        search=dataclasses.replace(
            AlphaZeroConfig().search, c_scale=1.1, c_puct=1.2, first_play_reduction=1.3
        ),
    )  # fmt: skip


def test_names_of_older_runs_are_not_for_files_of_ones_own(toml):
    with pytest.raises(Usage, match=r"unknown key 'clip'.*clip_range"):
        resolve("tictactoe", None, toml("[ppo]\nclip = 0.3"))


def test_a_run_of_a_newer_version_is_refused(tmp_path):
    (tmp_path / "config.toml").write_text('schema = 3\ngame = "tictactoe"')
    with pytest.raises(Failure, match="schema 3, of a newer Ludus"):
        read_config(tmp_path)


# ---- refusals


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("rowz = 5", ["rowz", "rows"]),
        ("[ppo]\nclipp = 1.0", ["[ppo]", "clipp", "clip_range"]),
        ("[nets]\nhidden = [8]", ["nets", "net"]),
        ('rows = "many"', ["rows", "'many'"]),
        ("rows = 1.5", ["rows", "1.5"]),
        ("rows = true", ["rows", "True"]),
        ("sync = 1", ["sync", "1"]),
        ("workers = true", ["workers", "True"]),
        ("ppo = 3", ["ppo", "[ppo]"]),
        ("switches = 3", ["switches", "[switches]"]),
        ('[net]\nhidden = ["wide"]', ["hidden", "wide"]),
        ("[net]\nhidden = 8", ["hidden", "8"]),
        ('device = "gpu"', ["device", "gpu", "cuda"]),
        ('preset = "huge"', ["huge", "quick"]),
        ("rows = ", ["not TOML"]),
    ],
)
def test_a_mistake_in_the_file_is_told_in_one_line(toml, text, words):
    file = toml(text)
    with pytest.raises(Usage) as error:
        resolve("tictactoe", None, file)
    message = one_line(error)
    assert all(word in message for word in words), message


def test_an_unknown_preset_is_told_with_the_choices():
    with pytest.raises(Usage) as error:
        parse(["tictactoe", "--preset", "huge"])
    assert all(name in one_line(error) for name in ("huge", *PRESETS))


def test_a_missing_file_and_a_missing_game_are_told(tmp_path):
    with pytest.raises(Usage, match="can't read"):
        parse(["tictactoe", "--config", str(tmp_path / "none.toml")])
    with pytest.raises(Usage, match="unknown game 'tictactow'"):
        parse(["tictactow"])
    with pytest.raises(Usage, match="which game"):
        parse(["--rows", "3"])


@pytest.mark.parametrize(
    ("mix", "word"),
    [
        ("self:0.5,clever:0.5", "clever"),
        ("greedy:much", "much"),
        ("random:-1", "-1"),
        ("self:0", "nothing"),
        ("self:nan", "nan"),
        ("random:inf", "inf"),
    ],
)
@pytest.mark.parametrize("game", ["ofc", "gym:CartPole-v1"])
def test_opponents_that_cant_be_seated_are_refused_before_anything_starts(game, mix, word, tmp_path):
    config = overlay(resolve(game, "test"), {"opponents": mix, "run": str(tmp_path / "run")}, "test")
    with pytest.raises(Usage) as error:
        train(config, Audience())
    if not (game.startswith("gym:") and "greedy" in mix):
        assert word in one_line(error)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ({"workers": "many"}, "many"),
        ({"ppo": {"gamma": 5.0}}, "--ppo.gamma is 5.0, but must be at least 0 and at most 1"),
        ({"decisions": 0}, "decisions"),
        ({"rows": -1}, "rows"),
        ({"steps": 2}, "steps"),  # so short that no seat decides twice, and nothing could be learned
        ({"switches": {"cards": 3}}, "cards"),
        ({"temperature_spread": 1.0}, "--temperature-spread"),
        ({"temperature_spread": -0.5}, "--temperature-spread"),
        ({"net": {"trunk": "conv"}}, "conv"),
    ],
)
def test_what_cant_be_trained_is_refused_before_anything_starts(values, word, tmp_path):
    config = overlay(resolve("tictactoe", "test"), {**values, "run": str(tmp_path / "run")}, "test")
    with pytest.raises(Usage) as error:
        train(config, Audience())
    assert word in one_line(error)
    assert not (tmp_path / "run").exists()


NAN, INF = float("nan"), float("inf")
OUT_OF_RANGE = [
    ("--ppo.gamma", 5.0, "at least 0 and at most 1"),
    ("--ppo.gamma", NAN, "finite"),
    ("--ppo.entropy-coef", -1e9, "at least 0"),
    ("--ppo.epochs", 0, "at least 1"),
    ("--ppo.learning-rate", -1e-3, "at least 0"),
    ("--ppo.learning-rate", INF, "finite"),
    ("--ppo.max-grad-norm", 0.0, "above 0"),
    ("--alphazero.full-share", 0.0, "above 0 and at most 1"),
    ("--alphazero.minibatch", 0, "at least 1"),
    ("--alphazero.search.simulations", 0, "at least 1"),
    ("--alphazero.search.first-play-reduction", NAN, "finite"),
    ("--net.hidden", 0, "at least 1"),
    ("--net.hidden", 10**9, "at most 65536"),
    ("--net.memory", -1, "at least 0"),
    ("--net.channels", 0, "at least 1"),
    ("--checkpoints.keep", 0, "at least 1"),
    ("--checkpoints.every-s", -1.0, "at least 0"),
    ("--seconds", NAN, "finite"),
    ("--seconds", -5.0, "at least 0"),
    ("--seconds", INF, "finite"),
    ("--workers", "-1", "auto or at least 0"),
    ("--workers", "1e3", "auto or at least 0"),
    ("--rows", -3, "at least 0"),
    ("--eval-games", -1, "at least 0"),
    ("--eval-every", "often", "auto or at least 0"),
    ("--decisions", 0, "at least 1"),
    ("--temperature-spread", 1.0, "below 1"),
    ("--log-s", -1.0, "at least 0"),
    ("--price-per-hour", NAN, "finite"),
]


@pytest.mark.parametrize(("flag", "value", "said"), OUT_OF_RANGE, ids=lambda value: str(value))
def test_a_value_out_of_its_range_is_refused_wherever_it_is_said(flag, value, said, toml, tmp_path):
    """As a flag, in a file and from Python; with the flag, the value and the range."""
    *groups, name = flag.removeprefix("--").replace("-", "_").split(".")
    nested = {name: [value] if name == "hidden" else value}
    for group in reversed(groups):
        nested = {group: nested}
    file, algo = toml(tomli_w.dumps(nested)), groups[0] if groups and groups[0] in algos.names() else "ppo"
    told = {**nested, "run": str(tmp_path / "run")}
    config = overlay(resolve("tictactoe", "test", algo=algo), told, "test")
    for attempt in (
        lambda: parse(["tictactoe", "--algo", algo, f"{flag}={value}"]),
        lambda: parse(["tictactoe", "--algo", algo, "--config", str(file)]),
        lambda: train(config, Audience()),
    ):
        with pytest.raises(Usage) as error:
            attempt()
        assert f"{flag} is {value}, but must be" in one_line(error) and said in one_line(error)
    assert not (tmp_path / "run").exists()


def test_a_flag_may_mend_what_a_file_says(toml):
    file = str(toml("[ppo]\ngamma = 5.0"))
    assert parse(["tictactoe", "--config", file, "--ppo.gamma", "1"]).settings.gamma == 1


SETTINGS = [algos.find(name).settings_type for name in algos.names()]


def test_every_number_that_can_be_set_has_a_range():
    """So that a new setting is not forgotten; any seed will do."""

    def unbounded(kind, group=""):
        for name, hint in get_type_hints(kind, include_extras=True).items():
            if dataclasses.is_dataclass(hint):
                yield from unbounded(hint, f"{group}{name}.")
            elif hint in (int, float, tuple[int, ...], tuple[float, ...]):
                yield group + name

    assert list(unbounded(Config)) == ["seed"]
    for kind in SETTINGS:
        assert list(unbounded(kind)) == []


def test_libraries_may_be_newer_and_constraints_pin_them():
    root = Path(__file__).parent.parent
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    extras = [package for extra in project["optional-dependencies"].values() for package in extra]
    wanted = [*project["dependencies"], *extras]
    assert [package for package in wanted if "==" in package] == []
    pinned = (root / "constraints.txt").read_text().lower().replace("_", "-")
    names = [re.split(r"[\[<>=]", package)[0] for package in wanted]
    assert [name for name in names if name != "ludus" and f"\n{name}==" not in pinned] == []


def test_messages_go_to_every_address_given():
    flags = ["--notify", "json://a", "--notify", "json://b"]
    assert parse(["tictactoe", *flags]).notify == ("json://a", "json://b")


def test_shares_of_opponents_add_up_to_one():
    assert parse_mix("self:3, past:1", games.open("tictactoe")) == {"self": 0.75, "past": 0.25}
    assert parse_mix("random", games.open("gym:CartPole-v1")) == {"random": 1.0}
    assert parse_mix("greedy:1,self:0", games.open("ofc")) == {"greedy": 1.0}


# ---- help


@pytest.mark.parametrize("kind", [Config, NetConfig, *SETTINGS], ids=lambda kind: kind.__module__)
def test_every_flag_says_what_it_is_for(kind):
    helps = {
        field.name: tyro._docstrings.get_field_docstring(kind, field.name, ())
        for field in dataclasses.fields(kind)
    }
    assert [name for name, text in helps.items() if not text] == []
