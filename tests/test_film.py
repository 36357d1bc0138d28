"""Recordings and videos of agents, from the command line."""

from pathlib import Path

import gymnasium
import numpy as np
import pytest

from commandline import ludus, one_line  # noqa: F401
from ludus import match
from ludus.agent import run_player
from ludus.core import film
from ludus.core.film import Film
from trainings import trained  # noqa: F401

TINY = {"rows": 2, "steps": 8, "decisions": 32, "workers": "0"}
GEMFALL = "retro:Gemfall-Nes-v0"


class Blind(gymnasium.Env):
    """Renders nothing."""

    observation_space = gymnasium.spaces.Box(0, 1, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, render_mode: str | None = None) -> None:
        self.render_mode = render_mode

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(2, np.float32), {}

    def step(self, action):
        return np.zeros(2, np.float32), 1.0, True, False, {}

    def render(self):
        return None


class NoMode(Blind):
    """Knows nothing of render modes."""

    def __init__(self) -> None:
        super().__init__()


@pytest.fixture
def console_run(trained):  # noqa: F811
    pytest.importorskip("stable_retro")
    small = {"frame_stack": 2, "size": 24, "max_steps": 12}
    return trained(GEMFALL, **TINY, switches=small)[0]


def test_a_recorded_game_of_an_agent_replays_exactly(console_run, ludus, tmp_path):  # noqa: F811
    from ludus.games.retro import recording
    from ludus.games.retro.pixels import shrink

    file = tmp_path / "game.bk2"
    words = ["--run", str(console_run), "--record", str(file), "--seed", "3", "--set", "max_steps=60"]
    code, out, _ = ludus("play", GEMFALL, *words)
    assert code == 0 and "60 decisions" in out
    frames = list(recording.replay(file))
    assert f"score {sum(frame.reward for frame in frames):g}," in out
    game = match.run_game(console_run, GEMFALL, ["max_steps=61"])  # the same, but not yet over
    table = game.table(1)
    try:
        turns = film.one_game(table, run_player(game, console_run, "", table), 3)
        last = [next(turns).obs[0, -1].copy() for _ in range(61)][-1]
    finally:
        table.close()
    shown = np.zeros((24, 24), np.uint8)
    shrink(frames[-1].screen, shown)
    assert (shown == last).all()


def test_videos_of_console_games(console_run, ludus, tmp_path):  # noqa: F811
    imageio_ffmpeg = pytest.importorskip("imageio_ffmpeg")
    code, out, _ = ludus("export", str(console_run), "--video", "game.mp4")
    assert code == 0 and "the video is in game.mp4" in out
    count, seconds = imageio_ffmpeg.count_frames_and_secs(str(tmp_path / "game.mp4"))
    assert 48 <= count <= 48 + 31  # 12 decisions, after up to 30 frames of waiting
    assert seconds == pytest.approx(count / 60, abs=0.1)


def test_bots_can_be_recorded_and_who_plays_must_be_said(ludus, tmp_path):  # noqa: F811
    pytest.importorskip("stable_retro")
    switches = ["--record", "game.bk2", "--set", "max_steps=20"]
    code, out, _ = ludus("play", GEMFALL, "--against", "scripted", *switches)
    assert code == 0 and "20 decisions" in out and (tmp_path / "game.bk2").exists()
    code, _, err = ludus("play", GEMFALL, *switches)
    assert code == 2 and "say who plays" in one_line(err)
    code, _, err = ludus("play", GEMFALL)
    assert code == 2 and "--record FILE.bk2" in one_line(err)
    code, _, err = ludus("play", "tictactoe", "--against", "random", "--record", "game.bk2")
    assert code == 2 and "only console games can" in one_line(err)


@pytest.mark.parametrize("game", ["gym:CartPole-v1", "zoo:classic/connect_four_v3"])
def test_videos_of_environments_that_render(game, trained, ludus, tmp_path):  # noqa: F811
    image = pytest.importorskip("PIL.Image")
    pytest.importorskip("pygame")
    folder, _ = trained(game, **TINY)
    code, out, _ = ludus("export", str(folder), "--video", "videos/game.gif")
    assert code == 0 and "the video is in videos/game.gif" in out
    with image.open(tmp_path / "videos/game.gif") as pictures:
        assert pictures.n_frames > 3 and pictures.size[0] > 100


@pytest.mark.parametrize(("kind", "said"), [("Blind", "render() gives no array"), ("NoMode", "render_mode")])
def test_environments_that_cannot_render_say_so(kind, said, trained, ludus, monkeypatch):  # noqa: F811
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    folder, _ = trained(f"test_film:{kind}", **TINY)
    code, _, err = ludus("export", str(folder), "--video", "game.gif")
    assert code == 2 and "can't render pictures" in one_line(err) and said in err
    assert not Path("game.gif").exists()


def test_native_games_and_other_files_are_refused(trained, ludus):  # noqa: F811
    folder, _ = trained("tictactoe", decisions=1)
    code, _, err = ludus("export", str(folder), "--video", "game.gif")
    assert code == 2 and "no pictures to make a video of" in one_line(err)
    code, _, err = ludus("export", str(folder), "--video", "game.avi")
    assert code == 2 and "a video ends with .gif or .mp4" in one_line(err)


def test_a_gif_lasts_as_long_as_its_film(tmp_path):
    image = pytest.importorskip("PIL.Image")
    rng = np.random.default_rng(0)
    pictures = (rng.integers(0, 255, (20, 30, 3), np.uint8) for _ in range(60))
    assert film.write_video(tmp_path / "noise.gif", Film(60.0, pictures)) == 60
    with image.open(tmp_path / "noise.gif") as shown:
        assert shown.n_frames == 20 and shown.info["duration"] == 50
