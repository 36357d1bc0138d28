"""Console games on our own NES game and on the one that comes with stable-retro."""

import contextlib
import gzip
import hashlib
import json
import multiprocessing
import os
import shutil
import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("stable_retro")
pytest.importorskip("cv2")

from ludus.core.errors import Failure, Usage
from ludus.games.retro import buttons, catalog, states
from ludus.games.retro.emulator import Emulator, is_free
from ludus.games.retro.gemfall import ScriptedPlayer
from ludus.games.retro.opening import open_table
from ludus.games.retro.options import Options, make_options
from ludus.games.retro.pixels import shrink
from ludus.games.retro.scenario import OPERATIONS, Scenario
from ludus.games.retro.starts import Starts
from ludus.games.retro.table import RetroTable

OURS, AIRSTRIKER = catalog.OWN_GAME, "Airstriker-Genesis-v0"
NES = Path(__file__).parents[1] / "nes"


@contextlib.contextmanager
def opened(game=OURS, rows=2, **switches):
    table = open_table(game, rows, **switches)
    try:
        yield table
    finally:
        table.close()


def random_actions(table, steps, seed=0):
    return np.random.default_rng(seed).integers(0, table.spec.actions, (steps, table.rows)).astype(np.int32)


def digest(array):
    return hashlib.sha1(np.ascontiguousarray(array)).hexdigest()


def trace(table, actions, turn=None):
    """What every row saw and got at each step, as text. actions: int32 [T, rows]"""
    lines = []
    for chosen in actions:
        turn = table.step(chosen)
        ends = turn.ended.tolist(), turn.truncated.tolist()
        lines.append((digest(turn.obs), turn.reward[:, 0].tolist(), ends))
    return lines


# ---- the game of our own


def test_rom_is_the_one_that_its_source_makes(tmp_path):
    version = subprocess.run(
        ["make", "-s", "--no-print-directory", "-C", str(NES), "version"], capture_output=True, text=True
    )
    if not shutil.which("cc65"):
        pytest.skip("cc65 is not installed")
    said = subprocess.run(["cc65", "--version"], stderr=subprocess.PIPE, text=True).stderr
    if version.stdout.strip() not in said:
        pytest.skip(f"another version of cc65 makes other code: {said.strip()}")
    source = shutil.copytree(NES, tmp_path / "nes")
    subprocess.run(["make", "-s", "-B", "-C", str(source)], check=True)
    built = (source / "gemfall.nes").read_bytes()
    assert built == (catalog.OURS / OURS / "rom.nes").read_bytes()
    assert catalog.rom_sha1(built) in catalog.known_sha1s(catalog.OURS / OURS)
    assert len(built) == 16 + 24 * 1024


def test_scripted_player_scores_many_times_what_random_play_does():
    with opened(rows=3) as table:
        scores = {}
        for who in ("random", "scripted"):
            player, rng = ScriptedPlayer(table), np.random.default_rng(1)
            turn = table.reset(3)
            done = []
            while len(done) < 3:
                chosen = rng.integers(0, 6, 3).astype(np.int32)
                if who == "scripted":
                    chosen = player.choose(np.arange(3), turn)
                turn = table.step(chosen)
                done += turn.finished.stats[:, 0, 2].tolist() if turn.finished else []
            scores[who] = np.mean(done)
    assert scores["random"] > 8
    assert scores["scripted"] > 3 * scores["random"]


def test_start_states_are_made_once_and_are_of_three_levels(tmp_path, monkeypatch):
    monkeypatch.setenv("LUDUS_CACHE", str(tmp_path))
    with opened(rows=1, states="all") as table:
        assert table.starts.names == ["Level1", "Level2", "Level3"]
        assert len(set(table.starts.states)) == 3
    made = sorted(tmp_path.rglob("*.state"))
    assert [file.stem for file in made] == ["Level1", "Level2", "Level3"]
    stamps = [file.stat().st_mtime_ns for file in made]
    with opened(rows=1, states="all"):
        assert [file.stat().st_mtime_ns for file in made] == stamps


# ---- slots are games of their own


def _alone(pipe, game, state, rows, skip):
    """Games by stable-retro's environment, each in an emulator of its own: screens, rewards and ends."""
    import stable_retro

    stable_retro.data.Integrations.add_custom_path(str(catalog.OURS))
    pipe.send([_one_alone(stable_retro, game, state, actions, skip) for actions in rows])


def _one_alone(stable_retro, game, state, actions, skip):
    env = stable_retro.RetroEnv(
        game, state=stable_retro.State.NONE, render_mode="rgb_array",
        use_restricted_actions=stable_retro.Actions.DISCRETE,
        inttype=stable_retro.data.Integrations.CUSTOM,
    )  # fmt: skip
    env.initial_state = state
    env.reset()
    seen, small = [], np.zeros((84, 84), np.uint8)
    for action in actions:
        total, done = 0.0, False
        for _ in range(skip):
            screen, reward, done, _, _ = env.step(action)
            total += reward
            if done:
                break
        shrink(screen, small)
        seen.append((digest(small), total, done))
        if done:
            break
    env.close()
    return seen


@pytest.mark.parametrize("game", [OURS, AIRSTRIKER])
def test_slots_play_exactly_as_separate_emulators_do(game):
    steps, rows = 300, 3
    with opened(game, rows, noop_max=0) as table:
        actions = random_actions(table, steps)
        table.reset(0)
        start = table.starts.states[0]
        seen = [[] for _ in range(rows)]
        for chosen in actions:
            turn = table.step(chosen)
            for row in range(rows):
                if not seen[row] or not seen[row][-1][2]:
                    # a game that ended shows the next one's first frame already
                    frame = "" if turn.ended[row] else digest(turn.obs[row, -1])
                    seen[row].append((frame, float(turn.reward[row, 0]), bool(turn.ended[row])))
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_alone, args=(theirs, game, start, actions.T.tolist(), 4))
    process.start()
    theirs.close()  # so that its end is noticed
    played = ours.recv()
    process.join()
    for row in range(rows):
        alone = [("" if done else frame, reward, done) for frame, reward, done in played[row]]
        assert alone == seen[row][: len(alone)]
        assert len(alone) == len(seen[row])
    assert sum(reward for row in seen for _, reward, _ in row) > 0  # else the rewards prove nothing


def test_rows_do_not_depend_on_their_neighbours():
    with opened(rows=3) as table:
        actions = random_actions(table, 60)
        table.reset(5)
        together = [table.step(chosen).obs[1].copy() for chosen in actions]
        table.reset(5)
        alone = [table.step(chosen[1:2], np.array([1])).obs[1].copy() for chosen in actions]
    assert all((a == b).all() for a, b in zip(together, alone, strict=True))


# ---- the table


def test_same_seed_same_games_other_seed_other_games():
    with opened() as table:
        actions = random_actions(table, 100)
        table.reset(7)
        first = trace(table, actions)
        table.reset(7)
        assert trace(table, actions) == first
        table.reset(8)
        assert trace(table, actions) != first


def test_rows_start_differently():
    with opened(rows=4) as table:
        table.reset(0)
        turn = table.step(np.zeros(4, np.int32))
        assert len({digest(row) for row in turn.obs}) > 1


def test_observation_is_the_last_frames_and_blank_before_a_start():
    with opened(max_steps=6) as table:
        turn = table.reset(0)
        assert turn.obs.shape == (2, 4, 84, 84)
        history = []
        for t in range(70):  # beyond the ring's length
            age = t % 6 + 1
            assert not turn.obs[:, : max(0, 4 - age)].any()
            assert turn.obs[:, -1].any()
            history = [*history, turn.obs[:, -1].copy()] if age > 1 else [turn.obs[:, -1].copy()]
            for back, frame in enumerate(reversed(history[-4:]), 1):
                assert (turn.obs[:, -back] == frame).all()
            turn = table.step(np.full(2, t % 6, np.int32))


def test_cut_off_games_are_truncated_with_their_final_observation():
    with opened(max_steps=5) as table:
        table.reset(0)
        actions = random_actions(table, 5)
        for chosen in actions[:4]:
            turn = table.step(chosen)
        before = turn.obs.copy()
        turn = table.step(actions[4])
        assert turn.truncated.all()
        assert not turn.ended.any()
        assert turn.last_obs.rows.tolist() == [0, 1]
        assert (turn.last_obs.obs[:, :3] == before[:, 1:]).all()  # it goes on from what was seen before
        assert not turn.obs[:, :3].any()  # and the next game has begun
        assert turn.finished.stats[:, 0, 0].tolist() == [5, 5]


def test_game_over_is_terminated_and_not_truncated():
    with opened(rows=1) as table:
        table.reset(0)
        for _ in range(700):
            turn = table.step(np.zeros(1, np.int32))
            if turn.finished:
                break
        assert turn.ended[0]
        assert not turn.truncated[0]
        assert turn.last_obs is None


def test_snapshot_goes_on_exactly_through_ends_of_games():
    with opened(rows=3, sticky=0.25, states="all", prioritised=0.5, max_steps=25) as table:
        actions = random_actions(table, 120)
        table.reset(1)
        trace(table, actions[:40])
        kept = table.snapshot()
        after = trace(table, actions[40:])
        turn = table.restore(kept | {"age": np.zeros(3, np.uint8)})  # which older runs have kept too
        assert not turn.ended.any()
        assert trace(table, actions[40:]) == after


def test_snapshot_of_another_table_is_refused():
    with opened(rows=3) as table:
        table.reset(0)
        kept = table.snapshot()
    with opened(rows=2) as table:
        table.reset(0)
        with pytest.raises(Failure, match="other rows, options or emulator"):
            table.restore(kept)
        with pytest.raises(Failure, match="other rows, options or emulator"):
            table.restore({})
        assert table.step(np.zeros(2, np.int32)).obs.any()


def test_rewards_are_shaped_and_reported_by_part():
    shaping = dict(integration=0.5, score=2.0, life_lost=-10.0, time=-0.01)
    with opened(rows=4, **shaping) as table:
        assert table.spec.stats[-4:] == (
            "reward_integration", "reward_score", "reward_life_lost", "reward_time",
        )  # fmt: skip
        table.reset(2)
        returned, games = np.zeros(4), 0
        for chosen in random_actions(table, 900):
            turn = table.step(chosen)
            returned += turn.reward[:, 0]
            for row, score, stats in zip(*turn.finished[:3], strict=True) if turn.finished else ():
                length, _, points, lives, *parts = stats[0].tolist()
                assert parts == pytest.approx([0.5 * points, 2 * points, -10 * (3 - lives), -0.01 * length])
                assert score[0] == pytest.approx(sum(parts), abs=1e-3)
                assert returned[row] == pytest.approx(score[0], abs=1e-2)
                returned[row], games = 0, games + 1
        assert games > 3


def test_idle_games_are_cut_off():
    with opened(rows=1, idle_steps=12, noop_max=0, buttons=["LEFT"]) as table:
        table.reset(0)
        idle = 0
        for _ in range(200):
            turn = table.step(np.zeros(1, np.int32))
            idle = 0 if turn.reward[0, 0] else idle + 1
            assert turn.truncated[0] == (idle == 12)
            if turn.truncated[0]:
                return
    pytest.fail("a ship in the corner was never idle for 12 decisions")


def test_sticky_frames_repeat_buttons():
    with opened(rows=1, sticky=0.9, noop_max=0) as table:
        left = table.buttons.index("LEFT")
        table.reset(0)
        table.step(np.array([left], np.int32))
        moved = 120 - table.memory(0)[0x307]
    assert moved in (0, 4, 8, 12)  # seldom all four frames: not with this seed


def test_table_writes_into_memory_of_the_caller():
    with opened() as table:
        table.reset(0)
        before = table.step(np.zeros(2, np.int32)).obs.copy()
        mine = np.zeros((2, 9, 84, 84), np.uint8)
        table.ring.move_to(mine)
        turn = table.step(np.ones(2, np.int32))
        assert np.shares_memory(turn.obs, mine)
        assert (turn.obs[:, :3] == before[:, 1:]).all()


# ---- rewards and ends


def manifests():
    """Scenarios that use every operation, measurement and way to join conditions."""
    for operation in OPERATIONS:
        for measurement in ("delta", "absolute"):
            term = {"op": operation, "measurement": measurement, "reference": 2} if operation else {}
            paid = term | {"reward": 3.0, "penalty": 0.5}
            yield {
                "reward": {"variables": {"score": paid, "time_left": paid}, "time": {"reward": 0.25}},
                "done": {"variables": {"lives": term | {"op": operation or "zero"}}},
            }
    early, low = {"op": "less-than", "reference": 2600}, {"op": "greater-or-equal", "reference": 1}
    for outer in ("any", "all"):
        for inner in ("any", "all"):
            node = {"condition": inner, "variables": {"time_left": early, "score": low}}
            lives = {"op": "less-or-equal", "reference": 3}
            yield {"done": {"condition": outer, "variables": {"lives": lives}, "nodes": {"a": node}}}
            yield {"done": {"condition": outer, "nodes": {"a": node, "b": {"nodes": {"c": node}}}}}


def test_scenarios_give_what_the_library_gives(tmp_path):
    integration = catalog.find(OURS)
    emulator = Emulator(integration)
    try:
        masks = buttons.masks(integration, buttons.names(integration, "discrete"))
        pairs = []
        for place, manifest in enumerate(manifests()):
            file = tmp_path / f"{place}.json"
            file.write_text(json.dumps(manifest))
            pairs.append((Scenario(manifest), emulator.new_data(str(file))))
        emulator.load(states.load_states(emulator, ["Level3"])[0])
        before = {}
        paid, ended = set(), set()
        rng = np.random.default_rng(0)
        for frame in range(400):
            emulator.hold(masks[rng.integers(len(masks))], 1)
            for place, (scenario, data) in enumerate(pairs):
                now = emulator.read(scenario.variables)
                data.update_ram()
                if frame:  # the first has nothing to be compared with
                    reward, done = scenario.reward(now, before[place]), scenario.done(now, before[place])
                    assert reward == data.current_reward(), place
                    assert done == data.is_done(), place
                    paid.add(reward)
                    ended.add(done)
                before[place] = now
        assert len(paid) > 5
        assert ended == {True, False}
    finally:
        emulator.close()


# ---- start states, buttons, pixels


def test_prioritised_starts_prefer_what_fails():
    starts = Starts(["good", "bad"], [b"", b""], 0.8)
    assert starts.probabilities().tolist() == [0.5, 0.5]
    for _ in range(30):
        starts.report(0, 10.0)
        starts.report(1, 2.0)
    starts.report(1, 10.0)
    good, bad = starts.probabilities()
    assert good == pytest.approx(0.1)
    assert bad == pytest.approx(0.9)
    stream = np.array([1, 3], np.uint64)
    drawn = [starts.draw(stream) for _ in range(1000)]
    assert 850 < sum(drawn) < 950


@pytest.mark.parametrize("game", [OURS, AIRSTRIKER])
def test_discrete_actions_have_the_librarys_numbers(game):
    integration = catalog.find(game)
    emulator = Emulator(integration)
    try:
        groups = emulator.data.valid_actions()
        masks = buttons.masks(integration, buttons.names(integration, "discrete"))
    finally:
        emulator.close()
    for action, mask in enumerate(masks):
        bits, rest = 0, action
        for group in groups:
            bits, rest = bits | group[rest % len(group)], rest // len(group)
        assert bits == sum(1 << place for place in np.flatnonzero(mask))
    assert len(masks) == np.prod([len(group) for group in groups])


def test_buttons_by_list():
    integration = catalog.find(OURS)
    names = buttons.names(integration, ["", "right", "RIGHT + A"])
    assert names == ["", "RIGHT", "RIGHT+A"]
    assert buttons.masks(integration, names).sum(1).tolist() == [0, 1, 2]
    with pytest.raises(Usage, match="no button 'JUMP'"):
        buttons.names(integration, ["JUMP"])
    with pytest.raises(Usage, match="discrete or filtered or a list"):
        buttons.names(integration, "some")


def test_shrinking_keeps_brightness_and_place():
    screen = np.zeros((224, 240, 3), np.uint8)
    screen[112:, :120] = 200
    small = np.zeros((84, 84), np.uint8)
    shrink(screen, small)
    assert small[60, 20] == 200
    assert small[20, 20] == small[60, 60] == 0
    assert small.mean() == pytest.approx(50, abs=1)


# ---- errors


@pytest.mark.parametrize(
    ("game", "said"),
    [
        ("Jackal-Nes-v0", "No ROM for Jackal-Nes-v0: run `ludus retro import DIR`"),
        ("Jackal-Nes", "its name ends with its version, Jackal-Nes-v0"),
        ("Jakcal-Nes-v0", "did you mean Jackal-Nes-v0"),
        ("Qwertyuiop", "unknown console game 'Qwertyuiop': try Gemfall-Nes-v0"),
    ],
)
def test_unknown_games_and_missing_roms_are_explained(game, said):
    with pytest.raises(Usage) as error:
        open_table(game, 1)
    assert said in str(error.value)
    assert is_free()


@pytest.fixture
def copied(tmp_path, monkeypatch):
    """A folder with a copy of our game under another name."""
    folder = tmp_path / "integrations" / "Copy-Nes-v0"
    shutil.copytree(catalog.OURS / OURS, folder)
    monkeypatch.setenv("LUDUS_RETRO", str(folder.parent))
    monkeypatch.setenv("LUDUS_CACHE", str(tmp_path / "cache"))
    return folder


def test_corrupt_rom_is_one_clear_line(copied):
    rom = bytearray((copied / "rom.nes").read_bytes())
    rom[1000] ^= 1
    (copied / "rom.nes").write_bytes(rom)
    with pytest.raises(Failure, match="The ROM of Copy-Nes-v0 is corrupt"):
        open_table("Copy-Nes-v0", 1)


@pytest.mark.parametrize("content", [b"", b"no gzip", b"\x1f\x8b\x08\x00truncated"])
def test_corrupt_state_file_is_one_clear_line(copied, content):
    (copied / "Level9.state").write_bytes(content)
    with pytest.raises(Failure, match=r"Level9.state is corrupt"):
        open_table("Copy-Nes-v0", 1, states="Level9")
    assert is_free()


def test_state_of_another_emulator_is_one_clear_line(copied):
    (copied / "Level9.state").write_bytes(gzip.compress(b"something else"))
    with pytest.raises(Failure, match="'Level9' is corrupt or of another emulator version"):
        open_table("Copy-Nes-v0", 1, states="Level9")


def test_corrupt_integration_is_one_clear_line(copied):
    (copied / "scenario.json").write_text("{")
    with pytest.raises(Failure, match=r"scenario.json can't be read"):
        open_table("Copy-Nes-v0", 1)


def test_options_are_checked():
    with pytest.raises(Usage, match="no option 'skip'"):
        make_options(skip=4)
    with pytest.raises(Usage, match="frame_skip is 0"):
        make_options(frame_skip=0)
    with pytest.raises(Usage, match="no state 'Level7': choose from Level1, Level2, Level3"):
        open_table(OURS, 1, states=["Level7"])
    with pytest.raises(Usage, match="no scenario 'contest'"):
        open_table(OURS, 1, scenario="contest")
    assert make_options(buttons=["", "A"]).buttons == ("", "A")


def test_shaping_by_a_variable_that_the_game_lacks(copied):
    (copied / "data.json").write_text('{"info": {"over": {"address": 771, "type": "|u1"}}}')
    (copied / "scenario.json").write_text('{"done": {"variables": {"over": {"op": "nonzero"}}}}')
    with pytest.raises(Usage, match="life_lost needs the variable 'lives', but Copy-Nes-v0 has only over"):
        open_table("Copy-Nes-v0", 1, life_lost=-1.0)


@pytest.fixture
def scripted(copied):
    """A copy of our game whose rewards Lua computes."""
    scenario = json.loads((copied / "scenario.json").read_text())
    scenario |= {"reward": {"script": "lua:gain"}, "scripts": ["script.lua"]}
    (copied / "scenario.json").write_text(json.dumps(scenario))
    (copied / "script.lua").write_text(
        "before = 0\nfunction gain ()\n  local delta = data.score - before\n  before = data.score\n"
        "  return delta\nend\n"
    )
    return copied.name


def test_lua_games_have_one_row_and_work(scripted):
    with pytest.raises(Usage, match="computes rewards in Lua"):
        open_table(scripted, 2)
    with opened(scripted, 1) as table:
        actions = random_actions(table, 1200)
        table.reset(0)
        finished = [turn.finished for turn in map(table.step, actions) if turn.finished]
        assert len(finished) >= 1
        for done in finished:
            assert done.score[0, 0] == done.stats[0, 0, 2]
        assert table.snapshot() == {}


def test_lua_games_of_a_killed_emulator_are_cut_off(scripted):
    with opened(scripted, 1, separate=True) as table:
        table.reset(0)
        table.step(np.zeros(1, np.int32))
        os.kill(table.pid, signal.SIGKILL)
        turn = table.step(np.zeros(1, np.int32))
        assert turn.truncated.all()
        assert turn.last_obs is None
        assert not turn.obs[0, :3].any()  # a new game
        assert not table.step(np.zeros(1, np.int32)).truncated.any()


def test_illegal_actions_are_refused():
    with opened() as table:
        table.reset(0)
        with pytest.raises(Failure, match=r"action 6 in row 1 is not in 0\.\.5"):
            table.step(np.array([0, 6], np.int32))


def test_opened_state_names_are_checked_before_the_emulator_opens():
    assert states.chosen_names(catalog.find(OURS), "all") == ["Level1", "Level2", "Level3"]
    with opened(rows=1) as table:
        assert isinstance(table, RetroTable)
        assert table.options == Options()
        assert not is_free()
    assert is_free()
