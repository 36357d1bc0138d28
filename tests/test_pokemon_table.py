"""The table of Pokémon battles, on the real simulator."""

import gc
import os
import signal
import time
from pathlib import Path

import numpy as np
import psutil
import pytest

from ludus.core import seeds
from ludus.core.errors import Failure, Usage
from ludus.games.pokemon import install, layout
from ludus.games.pokemon.bridge import Pool, Setup
from ludus.games.pokemon.rewards import PARTS, Rewards
from ludus.games.pokemon.table import STATS, PokemonTable
from pokemon_setup import needs_simulator, random_choice

RUNS = ["gen9randombattle", "gen8randombattle", "gen7randombattle", "gen4randombattle", "gen1randombattle"]


@pytest.fixture
def table():
    """Makes tables, and closes them at the end."""
    needs_simulator()
    made = []

    def make(*args, **kwargs):
        made.append(PokemonTable(*args, **kwargs))
        return made[-1]

    yield make
    for one in made:
        one.close()


def play(table, battles, seed=3):
    """Random play until so many battles are over; yields every turn."""
    rng, over = np.random.default_rng(seed), 0
    turn = table.reset(seed)
    yield turn
    while over < battles:
        turn = table.step(random_choice(turn.legal, rng))
        over += 0 if turn.finished is None else len(turn.finished.rows)
        yield turn


def log_of(table):
    """All that was said, without the clock."""
    return [one for one in table.said if not one[3].startswith("|t:|")]


@pytest.mark.parametrize("format", RUNS)
def test_random_play_is_never_refused(table, format):
    battles = table(8, format)
    finished = won = 0
    for turn in play(battles, 10):
        assert turn.legal.any(1).all()
        assert np.isfinite(turn.obs["numbers"]).all() and np.isfinite(turn.obs["field"]).all()
        if turn.finished is not None:
            finished += len(turn.finished.rows)
            won += int(turn.finished.stats[:, :, STATS.index("won")].sum())
            assert (np.abs(turn.finished.score).sum(1) == 2).all() and (turn.finished.score.sum(1) == 0).all()
            np.testing.assert_array_equal(turn.reward[turn.finished.rows], turn.finished.score)
    assert won == finished >= 10
    assert not battles.errors
    meters = battles.pool.meters
    assert meters.invalid == meters.defaults == 0
    assert meters.starts == 8 + finished and meters.processes == 1


def test_both_seats_decide_before_anything_happens(table):
    battles = table(4, lines=True)
    turn = battles.reset(1)
    assert (turn.seat == 0).all()
    said = len(battles.said)
    first = turn.obs.copy()
    turn = battles.step(turn.legal.argmax(1))
    assert (turn.seat == 1).all() and len(battles.said) == said, "the simulator waits for the other seat"
    assert (turn.obs["ids"][:, 0, 0] != first["ids"][:, 0, 0]).any(), "each seat sees its own team first"
    battles.step(turn.legal.argmax(1))
    assert len(battles.said) > said


def test_same_seed_same_log(table):
    logs = []
    for processes in (1, 2):
        battles = table(4, lines=True, processes=processes)
        for _ in play(battles, 3, seed=5):
            pass
        logs.append(sorted(log_of(battles), key=lambda one: one[:3]))
    assert logs[0] == logs[1]
    other = table(4, lines=True)
    for _ in play(other, 3, seed=6):
        pass
    assert log_of(other)[:200] != logs[0][:200]


def test_reset_in_the_middle_starts_anew(table):
    battles, fresh = table(4, rewards=Rewards(hit_points=1)), table(4, rewards=Rewards(hit_points=1))
    for _ in play(battles, 1, seed=4):
        pass
    again, first = play(battles, 3, seed=9), play(fresh, 3, seed=9)
    for turn, same in zip(again, first, strict=True):
        for name in ("obs", "legal", "seat", "reward", "ended", "truncated"):
            np.testing.assert_array_equal(getattr(turn, name), getattr(same, name), err_msg=name)


def test_rows_step_alone(table):
    battles = table(4)
    turn = battles.reset(2)
    rows = np.array([1, 3])
    before = turn.obs.copy()
    turn = battles.step(turn.legal[rows].argmax(1), rows)
    turn = battles.step(turn.legal[rows].argmax(1), rows)
    np.testing.assert_array_equal(turn.obs[[0, 2]], before[[0, 2]])
    assert (turn.obs[rows] != before[rows]).all()


def test_others_can_be_served_while_rows_wait(table):
    """`submit` and `collect` for groups in turn give what `step` gives for all."""
    weights = Rewards(hit_points=1)
    battles, together = (table(4, lines=True, rewards=weights, max_turns=10) for _ in range(2))
    groups = [np.array([0, 1]), np.array([2, 3])]
    turn, same = battles.reset(7), together.reset(7)
    paid, cut, seen = np.zeros((4, 2)), np.zeros(4, int), 0
    for _ in range(60):
        same = together.step(same.legal.argmax(1))
        paid += same.reward
        cut += same.truncated
        seen += 0 if same.last_obs is None else len(same.last_obs.rows)
    assert cut.all()
    for group in groups:
        battles.submit(turn.legal[group].argmax(1), group)
    for step in range(60):
        for group in groups[:: 1 - 2 * (step % 2)]:  # asked for out of order, too
            turn = battles.collect(group)
            paid[group] -= turn.reward[group]
            cut[group] -= turn.truncated[group]
            seen -= 0 if turn.last_obs is None else len(turn.last_obs.rows)
            others = np.setdiff1d(np.arange(4), group)
            assert not turn.reward[others].any() and not turn.truncated[others].any()
            if step < 59:
                battles.submit(turn.legal[group].argmax(1), group)
    np.testing.assert_allclose(paid, 0, atol=1e-5)
    assert not cut.any() and seen == 0
    np.testing.assert_array_equal(turn.obs, same.obs)
    assert sorted(log_of(battles)) == sorted(log_of(together))


def test_a_row_that_waits_takes_no_action(table):
    battles = table(2)
    turn = battles.reset(1)
    turn = battles.step(turn.legal.argmax(1))
    battles.submit(turn.legal.argmax(1))
    with pytest.raises(Failure, match="row 0 has no decision to make: collect it first"):
        battles.submit(turn.legal.argmax(1))


def test_turn_cap_cuts_off_and_shows_both_seats_the_end(table):
    battles = table(4, max_turns=5)
    cut = 0
    for turn in play(battles, 8):
        if turn.last_obs is None:
            continue
        rows = np.flatnonzero(turn.truncated)
        cut += len(rows)
        assert not turn.ended[rows].any() and (turn.reward[rows] == 0).all()
        assert sorted(zip(turn.last_obs.rows, turn.last_obs.seats, strict=True)) == [
            (row, seat) for row in rows for seat in (0, 1)
        ]
        turns = turn.last_obs.obs["field"][:, layout.FIELD.index("turn")]
        np.testing.assert_allclose(turns, 0.06)
        assert (turn.obs["field"][rows, layout.FIELD.index("turn")] < 0.02).all(), "a new battle has begun"
    assert cut >= 4


def test_reward_parts_add_up(table):
    weights = Rewards(
        win=1, knock_out=0.5, left=0.25, hit_points=0.125, failed_move=0.1, turn=0.01, switch=0.02
    )
    battles = table(4, rewards=weights)
    assert not battles.spec.zero_sum
    paid = np.zeros((4, 2))
    seen = 0
    for turn in play(battles, 8):
        paid += turn.reward
        if turn.finished is None:
            continue
        for row, score, stats in zip(*turn.finished[:3], strict=True):
            stat = dict(zip(STATS, stats.T, strict=True))
            np.testing.assert_allclose(paid[row], sum(stat[f"reward_{part}"] for part in PARTS), atol=1e-4)
            np.testing.assert_array_equal(stat["reward_win"], score)
            faints = stat["fainted"]
            np.testing.assert_allclose(stat["reward_knock_out"], 0.5 * (faints[::-1] - faints), atol=1e-5)
            np.testing.assert_allclose(stat["reward_left"], 0.25 * (faints[::-1] - faints), atol=1e-5)
            np.testing.assert_allclose(stat["reward_turn"], -0.01 * stat["turns"], atol=1e-5)
            np.testing.assert_allclose(stat["reward_switch"], -0.02 * stat["switches"], atol=1e-5)
            np.testing.assert_allclose(stat["reward_failed_move"], -0.1 * stat["failed_moves"], atol=1e-5)
            assert faints[score < 0] == 6, "who loses has nobody left"
            assert stat["reward_hit_points"].sum() == pytest.approx(0, abs=1e-4)
            paid[row], seen = 0, seen + 1
    assert seen >= 8


def test_illegal_actions_are_refused(table):
    battles = table(2)
    turn = battles.reset(0)
    for wrong in (-1, battles.spec.actions, int(np.flatnonzero(~turn.legal[1])[0])):
        with pytest.raises(Failure, match="pokemon: action"):
            battles.step(np.array([0, wrong]))


def test_team_preview_picks_ordered_triples(table):
    battles = table(4, "gen9bssfactory", lines=True)
    assert battles.spec.actions == 14 + 120
    turn = battles.reset(1)
    assert turn.legal[:, 14:].all() and not turn.legal[:, :14].any()
    turn = battles.step(np.full(4, 14 + 119))  # the last: places 6, 5, 4
    assert battles.pool.ready["previews"][119] == [6, 5, 4]
    announced = turn.obs["ids"][:, :6, 0].copy()
    turn = battles.step(np.full(4, 14))
    assert (turn.legal[:, :14].any(1) & ~turn.legal[:, 14:].any(1)).all()
    turn = battles.step(turn.legal.argmax(1))
    assert (turn.obs["numbers"][:, :6, layout.column("known")].sum(1) == 3).all(), "three were brought"
    np.testing.assert_array_equal(turn.obs["ids"][:, 0, 0], announced[:, 0])  # seat 1 brought 1, 2, 3
    for _ in play(battles, 4):
        pass
    assert not battles.errors


def test_format_names_are_checked():
    needs_simulator()
    for format, message in [
        ("gen9nosuchformat", "knows no format gen9nosuchformat"),
        ("gen9randomdoublesbattle", "is played in doubles, not singles"),
        ("gen9ou", "gen9ou needs teams: give a file or a folder"),
    ]:
        with pytest.raises(Usage, match=message):
            PokemonTable(2, format)


TEAM = """
Pikachu @ Light Ball
Ability: Static
Tera Type: Electric
EVs: 252 SpA / 4 SpD / 252 Spe
Timid Nature
- Thunderbolt
- Surf
- Volt Switch
- Nasty Plot
"""


def test_teams_from_a_folder(table, tmp_path):
    (tmp_path / "pikachu.txt").write_text(TEAM)
    (tmp_path / "snorlax.txt").write_text(
        "Snorlax @ Leftovers\nAbility: Thick Fat\nTera Type: Normal\nEVs: 252 HP\n- Body Slam\n- Rest\n"
    )
    battles = table(6, "gen9ou", team=str(tmp_path))
    turn = battles.reset(4)
    assert battles.spec.actions == 14 + 6, "a lead is chosen"
    assert (turn.legal[:, 14:].sum(1) == 1).all(), "of a team of one"
    species = layout.vocabulary()["species"]
    names = {species[turn.obs["ids"][row, place, 0]] for row in range(6) for place in (0, 6)}
    assert names == {"pikachu", "snorlax"}
    for _ in play(battles, 6):
        pass


def test_who_is_trapped_unseen_is_asked_again_alone(table, tmp_path):
    """Whether Dugtrio has Arena Trap is only known when a switch is refused."""

    def one(name, ability, *moves):
        return f"{name}\nAbility: {ability}\nEVs: 252 HP\n" + "".join(f"- {move}\n" for move in moves) + "\n"

    trap = one("Dugtrio", "Arena Trap", "Substitute", "Hone Claws") + one("Snorlax", "Thick Fat", "Rest")
    victim = one("Pikachu", "Static", "Agility", "Double Team") + one(
        "Blissey", "Natural Cure", "Soft-Boiled"
    )
    (tmp_path / "trap.txt").write_text(trap)
    (tmp_path / "victim.txt").write_text(victim)
    battles = table(12, "gen9anythinggoes", team=str(tmp_path))
    turn = battles.reset(1)
    species = np.array(layout.vocabulary()["species"])
    names = species[turn.obs["ids"][:, 0, 0]]
    for _ in range(2):  # both lead with their first
        turn = battles.step(np.full(12, 14))
    facing = species[turn.obs["ids"][:, 6, 0]]
    rows = np.flatnonzero((names == "dugtrio") & (facing == "pikachu"))
    assert len(rows), "some row draws these teams"
    turn = battles.step(np.zeros(len(rows), int), rows)
    assert (turn.seat[rows] == 1).all() and turn.legal[rows, 9].all(), "switching looks possible"
    turn = battles.step(np.full(len(rows), 9), rows)
    assert (turn.seat[rows] == 1).all(), "the other has chosen already"
    assert not turn.legal[rows, 8:14].any() and turn.legal[rows, 0].all()
    trapped = turn.obs["field"][rows, layout.FIELD.index("trapped")]
    assert (trapped == 1).all() and battles.pool.meters.unavailable == len(rows)
    turn = battles.step(np.zeros(len(rows), int), rows)
    assert (turn.seat[rows] == 0).all()
    np.testing.assert_allclose(turn.obs["field"][rows, layout.FIELD.index("turn")], 0.02)
    assert battles.pool.meters.invalid == 0


def test_illegal_team_shows_the_simulators_reasons(tmp_path):
    needs_simulator()
    (tmp_path / "bad.txt").write_text(TEAM.replace("Surf", "Spore"))
    with pytest.raises(Usage, match=r"bad\.txt: Pikachu can't learn Spore"):
        PokemonTable(1, "gen9ou", team=str(tmp_path / "bad.txt"))
    with pytest.raises(Usage, match="neither a file nor a folder"):
        PokemonTable(1, "gen9ou", team=str(tmp_path / "missing"))


def test_a_killed_process_is_replaced(table):
    battles = table(4, processes=2)
    rng = np.random.default_rng(1)
    turn = battles.reset(1)
    for _ in range(6):
        turn = battles.step(random_choice(turn.legal, rng))
    os.kill(battles.pool.pids()[0], signal.SIGKILL)
    cut = np.zeros(4, int)
    for _ in range(8):
        turn = battles.step(random_choice(turn.legal, rng))
        cut += turn.truncated
    np.testing.assert_array_equal(cut, [1, 0, 1, 0])  # its rows alone, each once
    assert battles.pool.meters.processes == 3
    assert list(battles.pool.meters.lost) == ["it ended with code -9"]


def test_a_process_that_dies_with_both_groups_waiting(table):
    battles = table(4)
    groups = [np.array([0, 1]), np.array([2, 3])]
    turn = battles.reset(1)
    turn = battles.step(turn.legal.argmax(1))
    for group in groups:
        battles.submit(turn.legal[group].argmax(1), group)
    os.kill(battles.pool.pids()[0], signal.SIGKILL)
    for group in groups[::-1]:
        turn = battles.collect(group)
        assert turn.truncated.nonzero()[0].tolist() == group.tolist()
        assert turn.finished.rows.tolist() == group.tolist() and turn.last_obs is None
    assert (turn.seat == 0).all()


def test_a_stuck_process_is_replaced(table):
    battles = table(2, patience_s=2.0)
    turn = battles.reset(1)
    stuck = battles.pool.pids()[0]
    os.kill(stuck, signal.SIGSTOP)
    for _ in range(2):
        turn = battles.step(turn.legal.argmax(1))
    assert turn.truncated.all() and not psutil.pid_exists(stuck)
    assert list(battles.pool.meters.lost) == ["it did not answer in time"]


@pytest.fixture
def change(tmp_path, monkeypatch):
    """Changes a file of the bridge for one test."""

    def make(name, old, new):
        files = tmp_path / "node"
        files.mkdir()
        for file in install.NODE_FILES.iterdir():
            (files / file.name).write_text(file.read_text())
        text = (files / name).read_text()
        assert text.count(old) == 1
        (files / name).write_text(text.replace(old, new))
        monkeypatch.setattr(install, "NODE_FILES", files)

    return make


def test_a_process_that_talks_nonsense_is_replaced(table, change):
    """After three ticks, this bridge says a line that is not JSON."""
    change("bridge.js", "meters.ticks++;", "if (++meters.ticks === 3) write(Buffer.from('what?\\n'));")
    battles = table(2)
    turn = battles.reset(1)
    cut = 0
    for _ in range(8):
        turn = battles.step(turn.legal.argmax(1))
        cut += int(turn.truncated.any())
    assert cut >= 1
    assert list(battles.pool.meters.lost) == ["it said what is not JSON: b'what?'"]


def test_a_simulator_that_never_starts_is_given_up(monkeypatch, tmp_path):
    needs_simulator()
    (tmp_path / "bridge.js").write_text("throw new Error('no way')")
    for name in install.PINNED:
        (tmp_path / name).write_text((install.NODE_FILES / name).read_text())
    monkeypatch.setattr(install, "NODE_FILES", tmp_path)
    with pytest.raises(Failure, match="does not start: it ended with code 1: Error: no way"):
        Pool(Setup(), 1)


def test_without_a_known_choice_the_simulator_chooses(table, change):
    """Here nothing counts as legal for a Pokémon that is poisoned or burnt."""
    wrong = "if (/ (psn|tox|brn)$/.test(team[0].condition)) return;"
    change("actions.js", "  if (request.teamPreview) {", f"  {wrong}\n  if (request.teamPreview) {{")
    battles = table(6)
    for turn in play(battles, 6):
        assert turn.legal.any(1).all()
    meters = battles.pool.meters
    assert meters.defaults > 0 == meters.invalid and meters.processes == 1 and not battles.errors


def test_an_error_in_one_battle_leaves_the_others(table, change):
    wrong = "if (this.row === 1 && this.battle.turn === 3) throw new Error('oops');"
    change("game.js", "      if (this.battle.choose(", f"      {wrong}\n      if (this.battle.choose(")
    battles = table(3)
    turn = battles.reset(1)
    cut = np.zeros(3, int)
    for _ in range(12):
        turn = battles.step(turn.legal.argmax(1))
        cut += turn.truncated
    assert cut[1] >= 1 and cut[0] == cut[2] == 0
    assert battles.errors[0] == (1, "oops") and battles.pool.meters.processes == 1


def test_nothing_is_left_behind(table):
    needs_simulator()
    gc.collect()  # what other tests left must not go meanwhile
    me = psutil.Process()
    fds = me.num_fds()
    for _ in range(2):
        battles = PokemonTable(2)
        pids = battles.pool.pids()
        battles.reset(0)
        battles.close()
        assert not any(psutil.pid_exists(pid) for pid in pids)
    assert me.num_fds() <= fds


def test_node_ends_with_the_worker_that_started_it(tmp_path):
    needs_simulator()
    from ludus import processes

    file = tmp_path / "pid"
    worker = processes.make_context().Process(target=_hold_a_table, args=(str(file),))
    worker.start()
    until = time.monotonic() + 60
    while not file.exists() or not file.read_text():
        assert time.monotonic() < until
        time.sleep(0.05)
    pid = int(Path(file).read_text())
    assert psutil.pid_exists(pid)
    os.kill(worker.pid, signal.SIGKILL)
    while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < until
        time.sleep(0.05)
    processes.end(worker)


def _hold_a_table(file: str) -> None:
    battles = PokemonTable(2)
    battles.reset(0)
    Path(file).write_text(str(battles.pool.pids()[0]))
    time.sleep(600)


def test_seeds_differ_between_rows():
    assert len({seeds.derive(1, "pokemon", row) for row in range(100)}) == 100
