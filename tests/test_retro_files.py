"""ROM imports, recordings and presets of console games."""

import hashlib
import shutil
import subprocess
import sys
import zipfile

import numpy as np
import pytest

pytest.importorskip("stable_retro")
pytest.importorskip("cv2")

from ludus.config import resolve
from ludus.core.errors import Failure, Usage
from ludus.games.retro import buttons, catalog, recording
from ludus.games.retro.import_roms import import_roms, report
from ludus.games.retro.options import make_options
from ludus.games.retro.pixels import shrink
from ludus.games.retro.table import make_spec
from test_retro import AIRSTRIKER, OURS, digest, opened, random_actions

ROM = catalog.OURS / OURS / "rom.nes"


# ---- imports


@pytest.fixture
def places(tmp_path):
    """Integrations of a game without its ROM."""
    folder = tmp_path / "integrations" / "Wanted-Nes-v0"
    shutil.copytree(catalog.OURS / OURS, folder)
    (folder / "rom.nes").unlink()
    return [folder.parent]


@pytest.fixture
def downloads(tmp_path):
    folder = tmp_path / "downloads"
    folder.mkdir()
    return folder


def test_import_says_what_each_file_was(places, downloads):
    # Another header is still the same game.
    (downloads / "My Game (U).bin").write_bytes(b"NES\x1a" + bytes(12) + ROM.read_bytes()[16:])
    (downloads / "bare.nes").write_bytes(ROM.read_bytes()[16:])
    (downloads / "other.nes").write_bytes(b"something else that is no ROM")
    with pytest.raises(Usage, match="No ROM for Wanted-Nes-v0"):
        catalog.find("Wanted-Nes-v0", places=places)
    matches = import_roms(downloads, places)
    lines = report(matches).splitlines()
    assert lines[0] == "My Game (U).bin: imported as Wanted-Nes-v0"
    assert lines[1] == "bare.nes: Wanted-Nes-v0, but without the header that emulators need"
    sha1 = hashlib.sha1(b"something else that is no ROM").hexdigest()
    assert lines[2] == f"other.nes: no known game (SHA-1 {sha1})"
    assert lines[3] == "1 games imported from 3 files"
    assert catalog.find("Wanted-Nes-v0", places=places).rom.name == "rom.nes"


def test_import_looks_into_archives(places, downloads):
    with zipfile.ZipFile(downloads / "games.zip", "w") as archive:
        archive.write(ROM, "deep/inside.nes")
        archive.writestr("readme.txt", "hello")
    said = {match.file: match.said for match in import_roms(downloads, places)}
    assert said["games.zip/deep/inside.nes"] == "imported as Wanted-Nes-v0"
    assert said["games.zip/readme.txt"].startswith("no known game")
    assert said["games.zip"] == "an archive"


def test_import_of_nothing_known_says_why(places, downloads):
    (downloads / "broken.zip").write_bytes(b"PK\x03\x04 and no more")
    text = report(import_roms(downloads, places))
    assert "broken.zip: can't be read" in text
    assert "0 games imported" in text
    assert "compare its SHA-1" in text
    with pytest.raises(Usage, match="there is no folder"):
        import_roms(downloads / "missing", places)


def test_import_that_cannot_be_written_is_one_clear_line(places, downloads):
    shutil.copy(ROM, downloads / "game.nes")
    (places[0] / "Wanted-Nes-v0" / "rom.nes").mkdir()
    with pytest.raises(Failure, match=r"rom.nes can't be written"):
        import_roms(downloads, places)


# ---- recordings


def recorded(file, game=OURS, **switches):
    """Record a game of row 1 while two others are played: screens that were seen, rewards, last memory."""
    with opened(game, 3, **switches) as table:
        table.record(1, str(file))
        turn = table.reset(11)
        frames, rewards = [digest(turn.obs[1, -1])], []
        for chosen in random_actions(table, 2000):
            turn = table.step(chosen)
            rewards.append(float(turn.reward[1, 0]))
            if turn.ended[1] or turn.truncated[1]:
                return frames, rewards
            frames.append(digest(turn.obs[1, -1]))
    pytest.fail("the game did not end")


@pytest.mark.parametrize(
    ("game", "most", "separate"), [(OURS, 0, False), (OURS, 80, True), (AIRSTRIKER, 150, False)]
)
def test_recording_replays_exactly(tmp_path, game, most, separate):
    file = tmp_path / "game.bk2"
    frames, rewards = recorded(file, game, max_steps=most, sticky=0.3, separate=separate)
    assert file.stat().st_size < 1_000_000
    small, screens, total, ended = np.zeros((84, 84), np.uint8), [], 0.0, False
    for frame in recording.replay(file):
        shrink(frame.screen, small)
        screens.append(digest(small))
        total, ended = total + frame.reward, frame.done
    assert total == sum(rewards) > 0
    assert ended == (most == 0)
    # Decisions are four frames each; the last may be shorter, and is not in `frames`.
    idle = screens.index(frames[0])
    assert screens[idle::4][: len(frames)] == frames


def test_recording_plays_in_the_librarys_own_tools(tmp_path):
    """The first step of a recording stands for the environment's reset."""
    file = tmp_path / "game.bk2"
    rewards = recorded(file, max_steps=100)[1]
    script = f"""
import stable_retro
movie = stable_retro.Movie({str(file)!r})
movie.step()
stable_retro.data.Integrations.add_custom_path({str(catalog.OURS)!r})
env = stable_retro.RetroEnv(
    movie.get_game(), state=stable_retro.State.NONE, render_mode="rgb_array",
    use_restricted_actions=stable_retro.Actions.ALL, inttype=stable_retro.data.Integrations.CUSTOM,
)
env.initial_state = movie.get_state()
env.reset()
total = 0.0
while movie.step():
    total += env.step([movie.get_key(button, 0) for button in range(env.num_buttons)])[1]
print(total)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert float(done.stdout) == sum(rewards)


@pytest.mark.parametrize("kind", ["gif", "mp4"])
def test_video_of_a_recording(tmp_path, kind):
    pytest.importorskip("imageio_ffmpeg" if kind == "mp4" else "PIL")
    recorded(tmp_path / "game.bk2", max_steps=30)
    video = tmp_path / f"game.{kind}"
    played = recording.render(tmp_path / "game.bk2", video)
    assert 120 < played <= 151
    if kind == "gif":
        from PIL import Image

        with Image.open(video) as pictures:
            assert pictures.size == (240, 224)
            lasting_ms = 0
            for place in range(pictures.n_frames):  # one that is like the one before is not kept
                pictures.seek(place)
                lasting_ms += pictures.info["duration"]
            assert lasting_ms == pytest.approx(1000 * played / 60, abs=60)
    else:
        import imageio_ffmpeg

        count, seconds = imageio_ffmpeg.count_frames_and_secs(str(video))
        assert count == played
        assert seconds == pytest.approx(played / 60, abs=0.1)


def test_bad_recordings_are_refused(tmp_path):
    with pytest.raises(Usage, match="there is no recording"):
        recording.open_movie(tmp_path / "missing.bk2")
    (tmp_path / "bad.bk2").write_bytes(b"nothing of the kind")
    with pytest.raises(Failure, match="is no recording of a console game"):
        recording.open_movie(tmp_path / "bad.bk2")
    with pytest.raises(Usage, match=r"end with \.bk2"):
        recording.Recorder(tmp_path / "game.mp4")
    with pytest.raises(Usage, match="a video ends with"):
        recording.render(tmp_path / "bad.bk2", tmp_path / "video.avi")


# ---- presets


@pytest.mark.parametrize("game", ["Gemfall-Nes-v0", "Jackal-Nes-v0"])
def test_presets_are_options_that_fit_their_games(game, tmp_path):
    """Jackal's ROM is its owner's: a stand-in shows that all but the ROM is right."""
    folder = tmp_path / game
    shutil.copytree(catalog.games()[game], folder)
    shutil.copy(ROM, folder / "rom.nes")
    (folder / "rom.sha").write_text(catalog.rom_sha1(ROM.read_bytes()))
    integration = catalog.find(game, places=[tmp_path])
    told = resolve(f"retro:{game}").switches
    options = make_options(**told)
    spec = make_spec(integration, options)
    assert spec.actions == len(told["buttons"])
    assert len(set(buttons.names(integration, options.buttons))) == spec.actions
    assert integration.default_state in integration.state_names


def test_airstriker_takes_the_same_path_as_jackal():
    options = resolve("retro:Jackal-Nes-v0").switches | {"idle_steps": 60}
    with opened(AIRSTRIKER, 4, **options) as table:
        table.reset(0)
        stats = []
        for chosen in random_actions(table, 250):
            turn = table.step(chosen)
            stats += turn.finished.stats[:, 0].tolist() if turn.finished else []
        assert len(stats) >= 4
        named = [dict(zip(table.spec.stats, row, strict=True)) for row in stats]
        assert all(row["reward_time"] == pytest.approx(-0.001 * row["length"]) for row in named)
        assert any(row["reward_integration"] > 0 for row in named)
