"""Blokus against a slow generator of another make, and each trap that a Blokus program fell into before."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ludus import games, match
from ludus.core import conformance, seeds
from ludus.core.conformance import Play, legal_of, observation_of, score_of
from ludus.core.errors import Usage
from ludus.core.rules import RandomBot
from ludus.games.blokus.pieces import NAMES, PIECE_SIZE
from ludus.games.blokus.text import parse_square, square_text
from slow_blokus import STARTS, SlowGame, placements

BOARDS = ("duo", "classic")
CROSS = "e9,d10,e10,f10,e11"


def dealt(board: str = "duo", n: int = 1) -> tuple:
    rules = games.open("blokus", board=board).rules
    states = rules.blank(n)
    rules.deal(states, seeds.rows(0, n))
    return rules, states


def played(rules, states: np.ndarray, *moves: str) -> np.ndarray:
    for move in moves:
        action = rules.parse_action(states[0], move)
        rules.play(states, np.array([action], np.int32), seeds.rows(0, 1))
    return states


def legal_texts(rules, state: np.void) -> set[str]:
    legal = legal_of(rules, np.array([state]))[0]
    return {rules.action_text(state, int(action)) for action in np.flatnonzero(legal)}


def followed(board: str, seed: int):
    """A random game beside its slow twin: before each decision, and at last when it is over."""
    rules, slow = games.open("blokus", board=board).rules, SlowGame(board)
    play = Play(rules, seed=seed, rows=1)
    for states, actions in play.decisions():
        yield rules, slow, states, actions
        seat, text = int(states[0]["turn"]), rules.action_text(states[0], int(actions[0]))
        if text != "pass":
            slow.play(seat, text)
    yield rules, slow, play.states, None


# ---- placements, counts


@pytest.mark.parametrize(("board", "count"), [("duo", 13_729), ("classic", 30_433)])
def test_every_placement_has_one_number_in_the_view_of_every_seat(board, count):
    rules, states = dealt(board)
    assert rules.spec.actions == count + 1
    for seat in range(rules.spec.seats):
        states["turn"] = seat
        texts = {rules.action_text(states[0], action) for action in range(count)}
        assert texts == placements(board).keys()
    assert rules.action_text(states[0], count) == "pass"


def children(rules, states: np.ndarray) -> np.ndarray:
    """The states after every legal action of every state."""
    actions, counts = np.zeros((len(states), 2000), np.int32), np.zeros(len(states), np.int32)
    rules.list_legal(states, actions, counts)
    assert counts.max() <= actions.shape[1]
    chosen = np.concatenate([row[:count] for row, count in zip(actions, counts, strict=True)])
    after = np.repeat(states, counts)
    rules.play(after, chosen, seeds.rows(0, len(after)))
    return after


def test_perft_of_duo():
    rules, states = dealt()
    first = children(rules, states)
    second = children(rules, first)
    third, counts = np.zeros((len(second), 1), np.int32), np.zeros(len(second), np.int32)
    rules.list_legal(second, third, counts)
    assert (len(first), len(second), counts.sum()) == (414, 171_396, 89_204_762)
    assert slow_perft_of_three_moves() == 89_204_762


def slow_perft_of_three_moves() -> int:
    """For each first and third move of one seat, the second moves of the other that are not in its way."""
    game = SlowGame("duo")
    replies = [game.all[text].squares for text in game.legal(1)]
    left_over: dict[str, int] = {}
    total = 0
    for opening in game.legal(0):
        after = SlowGame("duo")
        after.play(0, opening)
        for text in after.legal(0):
            if text not in left_over:
                squares = game.all[text].squares
                left_over[text] = sum(not reply & squares for reply in replies)
            total += left_over[text]
    return total


def test_perft_of_classic():
    """Nobody reaches anybody in the first round."""
    rules, states = dealt("classic")
    for moves in (1, 2):
        states = children(rules, states)
        assert len(states) == 58**moves


def expect_slow_moves(board: str, seed: int) -> None:
    for rules, slow, states, actions in followed(board, seed):
        if actions is not None:
            expected = slow.legal(int(states[0]["turn"])) or {"pass"}
            assert legal_texts(rules, states[0]) == expected


@settings(max_examples=12)
@given(seed=st.integers(0, 2**32))
def test_legal_moves_of_duo_are_those_of_the_slow_generator(seed):
    expect_slow_moves("duo", seed)


@settings(max_examples=3)
@given(seed=st.integers(0, 2**32))
def test_legal_moves_of_classic_are_those_of_the_slow_generator(seed):
    expect_slow_moves("classic", seed)


def test_listed_moves_are_those_of_the_mask():
    rules = games.open("blokus").rules
    for states, _ in Play(rules).decisions():
        listed, counts = np.zeros((len(states), 2000), np.int32), np.zeros(len(states), np.int32)
        rules.list_legal(states, listed, counts)
        for mask, row, count in zip(legal_of(rules, states), listed, counts, strict=True):
            assert np.flatnonzero(mask).tolist() == row[:count].tolist()
        rules.list_legal(states, short := np.zeros((len(states), 3), np.int32), few := counts.copy())
        assert (few == counts).all() and all(
            (short[i, :n] == listed[i, :n]).all() for i, n in enumerate(np.minimum(counts, 3))
        )


# ---- start points


@pytest.mark.parametrize("board", BOARDS)
def test_the_first_piece_of_a_seat_covers_its_own_start_point(board):
    rules, states = dealt(board)
    for start in STARTS[board][1]:
        texts = legal_texts(rules, states[0])
        assert texts == {text for text in placements(board) if start in text.split(",")}
        played(rules, states, start)


# ---- passes and the end


@pytest.mark.parametrize("board", BOARDS)
def test_a_seat_passes_only_without_a_move_and_all_is_over_only_when_nobody_has_one(board):
    passes = 0
    for seed in (3, 4):
        for rules, slow, states, actions in followed(board, seed):
            seats = range(rules.spec.seats)
            stuck = [not slow.legal(seat) for seat in seats]
            assert [bool(states[0]["stuck"] >> seat & 1) for seat in seats] == stuck
            assert rules.over(states)[0] == all(stuck) == (actions is None)
            if actions is not None:
                is_pass = actions[0] == rules.spec.actions - 1
                assert is_pass == stuck[states[0]["turn"]]
                passes += is_pass
    assert passes > 0


def test_a_pass_changes_nothing_but_whose_turn_it_is():
    rules = games.open("blokus").rules
    found = 0
    for states, actions in Play(rules, rows=64).decisions():
        passing = actions == rules.spec.actions - 1
        before, after = states[passing], states[passing].copy()
        rules.play(after, actions[passing], seeds.rows(0, len(after)))
        found += len(before)
        assert (score_of(rules, before) == score_of(rules, after)).all()
        assert (after["turn"] == 1 - before["turn"]).all()
        assert (after["passes"].sum(1) == before["passes"].sum(1) + 1).all()
        after["turn"], after["passes"] = before["turn"], before["passes"]
        assert after.tobytes() == before.tobytes()
        assert not rules.over(after).any()
    assert found > 20


def test_no_action_is_legal_once_the_game_is_over():
    play = Play(games.open("blokus").rules)
    for _ in play.decisions():
        pass
    assert not legal_of(play.rules, play.states).any()


# ---- points


@pytest.mark.parametrize(("last", "points"), [("1", 1 + 15 + 5), ("X", 5 + 15)])
def test_placing_everything_pays_more_and_the_single_square_last_even_more(last, points):
    rules, states = dealt()
    states["left"][0, 0] = 1 << NAMES.index(last)
    played(rules, states, "e10" if last == "1" else CROSS)
    assert states["points"][0].tolist() == [points, 0]
    assert score_of(rules, states)[0].tolist() == [points, -points]
    assert states["stuck"][0] == 1


def test_scores_are_the_lead_over_the_mean_of_the_others():
    rules, states = dealt("classic")
    states["points"] = [[10, 20, 30, 40]]
    assert score_of(rules, states)[0] == pytest.approx([-20, 10 / 3 - 10, 10 - 10 / 3, 20])


@pytest.mark.parametrize("board", BOARDS)
def test_statistics_add_up(board):
    play = Play(games.open("blokus", board=board).rules, rows=32)
    decisions = sum(len(actions) for _, actions in play.decisions())
    stats = np.zeros((32, play.rules.spec.seats, len(play.rules.spec.stats)), np.float32)
    play.rules.stats(play.states, stats)
    of = dict(zip(play.rules.spec.stats, np.moveaxis(stats, 2, 0), strict=True))
    assert (of["moves"] + of["passes"]).sum() == decisions
    assert (of["moves"] + of["left"] == 21).all()
    winner = of["squares"] + 15 * of["all"]
    assert (of["win"].sum(1) + (of["draw"].sum(1) > 0) == 1).all()
    assert (winner[of["win"] == 1] == winner.max(1)[of["win"].any(1)]).all()
    assert (of["first"][:, 0] == 1).all() and (of["first"][:, 1:] == 0).all()
    assert (of["first_win"] == of["win"] * of["first"]).all()


@pytest.mark.parametrize("first", [0.0, 0.5, 1.0])
def test_results_can_be_shown_whatever_seats_were_played(first):
    stats = dict.fromkeys(games.open("blokus").rules.spec.stats, 0.5) | {
        "first": first,
        "first_win": first / 2,
    }
    assert games.open("blokus").columns(stats)["win % first"] == ("50.0" if first else "0.0")


# ---- views, symmetries


@pytest.mark.parametrize("board", BOARDS)
def test_planes_show_the_board_turned_to_the_seat_to_move(board):
    """Each plane against the slow game's squares, which are turned here by their names."""
    for number, (rules, slow, states, actions) in enumerate(followed(board, 5)):
        if actions is None or number % 5:
            continue
        seats, side, mover = rules.spec.seats, rules.board.side, int(states[0]["turn"])
        planes = observation_of(rules, states)[0]
        for ahead in range(seats):
            seat = (mover + ahead) % seats
            free = ~(slow.taken | slow.edges[seat])
            corners = slow.corners[seat] & free
            for place, expected in enumerate((slow.squares[seat], free, corners)):
                seen = np.array(
                    [[expected >> side * y + x & 1 for x in range(side)] for y in range(side)[::-1]]
                )
                assert (planes[3 * ahead + place] == np.rot90(seen, mover * (4 // seats))).all()
            pieces = planes[3 * seats + ahead].ravel()
            sizes = sorted(len(piece) for piece in slow.left(seat))
            assert sorted(PIECE_SIZE[pieces[:21] == 1]) == sizes
            assert pieces[21] == (not slow.legal(seat)) and not pieces[22:].any()


@pytest.mark.parametrize("board", BOARDS)
def test_all_seats_see_the_same_when_all_play_the_same_numbers(board):
    rules, states = dealt(board)
    first = legal_of(rules, states)
    for _ in range(rules.spec.seats):
        assert (legal_of(rules, states) == first).all()
        rules.play(states, np.flatnonzero(first)[-1:].astype(np.int32), seeds.rows(0, 1))
    planes = observation_of(rules, states)[0]
    quarters = 4 // rules.spec.seats
    for ahead in range(rules.spec.seats):
        assert (np.rot90(planes[3 * ahead], ahead * quarters) == planes[0]).all()


@pytest.mark.parametrize("board", BOARDS)
def test_symmetries_turn_planes_moves_and_games_alike(board):
    """A game and its image, move by move: what is seen, what is legal and what it brings stay images."""
    rules = games.open("blokus", board=board).rules
    for symmetry in rules.symmetries:
        to_image = np.argsort(symmetry.actions)
        image = rules.blank(8)
        rules.deal(image, seeds.rows(0, 8))
        for states, actions in Play(rules, rows=8).decisions(most=20):
            planes, seen = observation_of(rules, states), observation_of(rules, image)
            assert (symmetry.turn_planes(planes) == seen).all()
            assert (legal_of(rules, states)[:, symmetry.actions] == legal_of(rules, image)).all()
            assert (score_of(rules, states) == score_of(rules, image)).all()
            rules.play(image, to_image[actions].astype(np.int32), seeds.rows(0, 8))


def test_the_diagonal_of_duo_swaps_columns_and_rows():
    rules, states = dealt()
    same, diagonal = rules.symmetries
    assert (same.actions == np.arange(rules.spec.actions)).all()
    for action in range(0, rules.board.placements, 7):
        squares = {parse_square(word, 14) for word in rules.action_text(states[0], action).split(",")}
        image = rules.action_text(states[0], int(diagonal.actions[action]))
        assert {square_text((column, row), 14) for row, column in squares} == set(image.split(","))
    assert diagonal.actions[-1] == rules.spec.actions - 1


def test_no_other_turn_or_flip_keeps_start_points_and_order():
    """Each of the eight, by where it takes the seats' start points, as the first seat sees them."""
    for board, kept in (("duo", 2), ("classic", 1)):
        side, starts = STARTS[board]
        points = [parse_square(start, side) for start in starts]
        grid = np.zeros((side, side), int)
        for seat, point in enumerate(points):
            grid[point] = seat + 1
        images = [np.rot90(part, quarters) for part in (grid, grid.T) for quarters in range(4)]
        assert sum((image == grid).all() for image in images) == kept
        assert len(games.open("blokus", board=board).rules.symmetries) == kept


# ---- states


def test_a_state_is_small_and_whole():
    for board, most in (("duo", 256), ("classic", 704)):
        state = games.open("blokus", board=board).rules.spec.state
        assert state.itemsize <= most and not conformance.has_padding(state)


def test_classic_keeps_the_contract():
    rules = games.open("blokus", board="classic").rules
    assert not {said: problem for said, problem in conformance.check(rules) if problem}


def test_a_switch_that_is_no_board_is_explained():
    with pytest.raises(Usage, match="duo, classic"):
        games.open("blokus", board="trigon")


# ---- text


def test_notation_is_columns_from_the_left_and_rows_from_the_bottom():
    rules, states = dealt()
    action = rules.parse_action(states[0], CROSS)
    assert rules.action_text(states[0], action) == CROSS
    assert rules.parse_action(states[0], "E11 f10, e10,D10 e9") == action
    played(rules, states, CROSS)
    rows = rules.text(states[0]).split("board ")[1].split("/")
    assert (rows[3][4], rows[4][3:6], rows[5][4]) == ("X", "XXX", "X")


@pytest.mark.parametrize(
    ("move", "said"),
    [
        ("", "squares to cover"),
        ("pass", "can't pass"),
        ("o1", "column a-n"),
        ("e15", "rows are 1-14"),
        ("e0", "rows are 1-14"),
        ("e", "not a square"),
        ("e²", "not a square"),
        ("e9,e9", "no piece"),
        ("e9,g9", "no piece"),
        ("a1,a2,a3,a4,a5,a6", "no piece"),
        ("g12", "'g12' is not possible: it touches no corner"),
        (CROSS, "X is already on the board"),
        ("e10", "e10 is taken"),
        ("j5", "j5 is taken"),
        ("e12", "e12 shares an edge with a piece of yours"),
    ],
)
def test_a_move_that_is_not_possible_is_refused_with_the_reason(move, said):
    rules, states = dealt()
    played(rules, states, CROSS, "j5")
    with pytest.raises(Usage, match=said):
        rules.parse_action(states[0], move)


@pytest.mark.parametrize(("before", "start"), [((), "e10"), (("e10",), "j5")])
def test_a_first_move_elsewhere_is_told_where_to_start(before, start):
    rules, states = dealt()
    played(rules, states, *before)
    with pytest.raises(Usage, match=f"must cover {start}"):
        rules.parse_action(states[0], "a1")


def changed_text(old: str, new: str) -> str:
    rules, states = dealt()
    text = rules.text(played(rules, states, CROSS, "j5")[0])
    assert old in text
    return text.replace(old, new)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("turn 0", "turn 2", "not a Blokus state"),
        ("turn 0", "turn -1", "not a Blokus state"),
        ("turn", "seat", "not a Blokus state"),
        ("points 5 1", "points 5", "not a Blokus state"),
        ("passes 0 0", "passes 0 300", "not a Blokus state"),
        (".XXX.", ".XXZ.", "not a Blokus state"),
        ("/", "", "not a Blokus state"),
        ("points 5 1", "points 20 1", "has 5 points, not 20"),
        ("...XXX....", "..XXXX....", "is no piece"),
        (".O....", ".O...O", "is there twice"),
        ("O", ".", "has 0 points, not 1"),
        ("....X..", ".......", "does not cover its start"),
    ],
)
def test_a_state_that_cannot_be_is_refused(old, new, said):
    text = changed_text(old, new)
    if said.endswith("start"):
        text = text.replace("...XXX", "X.....")
    with pytest.raises(Usage, match=said):
        games.open("blokus").rules.parse(text)


# ---- bots, seeds


def test_greedy_takes_the_largest_piece_and_then_the_most_corners():
    game = games.open("blokus")
    rules, greedy = game.rules, game.bot("greedy")
    slow = SlowGame("duo")
    play = Play(rules, seed=7, rows=1)
    for states, actions in play.decisions():
        seat = int(states[0]["turn"])
        chosen = rules.action_text(states[0], int(greedy.choose(states, seeds.rows(1, 1))[0]))
        ranks = {text: rank(slow, seat, text) for text in slow.legal(seat)}
        assert chosen == "pass" if not ranks else ranks[chosen] == max(ranks.values())
        text = rules.action_text(states[0], int(actions[0]))
        if text != "pass":
            slow.play(seat, text)


def rank(slow: SlowGame, seat: int, text: str) -> tuple[int, int]:
    placed = slow.all[text]
    blocked = slow.taken | slow.edges[seat] | placed.squares | placed.edges
    corners = (slow.corners[seat] | placed.corners) & ~blocked
    return placed.squares.bit_count(), corners.bit_count()


def test_greedy_does_not_repeat_one_game():
    """A bot that always plays the same makes a hundred games of a match one."""
    game = games.open("blokus")
    rules, greedy = game.rules, game.bot("greedy")
    assert (
        len({state.tobytes() for state in match.played(match.game_steps(rules, [greedy, greedy], 50, 1))})
        > 45
    )


def test_seeds_make_different_games_and_repeat_them():
    game = games.open("blokus")
    rules, greedy = game.rules, game.bot("greedy")
    lineup = [greedy, RandomBot(rules)]
    once, again, other = (match.played(match.game_steps(rules, lineup, 50, seed)) for seed in (1, 1, 2))
    assert once.tobytes() == again.tobytes()
    assert len({state.tobytes() for state in np.concatenate([once, other])}) == 100


def test_greedy_beats_random_from_every_seat():
    for board in BOARDS:
        game = games.open("blokus", board=board)
        rules, greedy, others = game.rules, game.bot("greedy"), RandomBot(game.rules)
        for seat in range(rules.spec.seats):
            lineup = [greedy if place == seat else others for place in range(rules.spec.seats)]
            assert score_of(rules, match.played(match.game_steps(rules, lineup, 40, 1)))[:, seat].mean() > 8


def test_pieces_are_in_the_order_of_their_size():
    assert (np.diff(PIECE_SIZE.astype(int)) >= 0).all() and PIECE_SIZE.sum() == 89
