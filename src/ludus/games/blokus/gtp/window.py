"""Pentobi's window as a GTP engine for Blokus Duo, as packages have no `pentobi-gtp`. A program of its own:

    python window.py /usr/games/pentobi --level 6

The window is drawn nowhere and nothing is clicked: it runs in a style of ours (`STYLE`), whose QML opens the
game so far, has the computer play a move as "Play Move" in the menu does, saves the game and asks what to do
next. With the same seed a window on a screen plays the same moves (Pentobi 22.1).
"""

import argparse
import contextlib
import itertools
import re
import socket
import subprocess
import sys
import tempfile
import urllib.parse
from pathlib import Path

STYLE = """
import QtQuick
import QtQuick.Templates as T

T.ApplicationWindow {
    id: window
    property var game
    property var player
    property int jobs: 0

    function ask(kind, said) {
        const request = new XMLHttpRequest()
        request.onreadystatechange = () => {
            if (request.readyState !== XMLHttpRequest.DONE)
                return
            if (request.status !== 200)
                return Qt.exit(1) // nobody is there any more
            jobs += 1
            window.gameView.enableAnimations = false
            if (!game.openFile("GAME"))
                return ask("error", game.getError())
            game.goEnd()
            player.level = Number(request.responseText)
            if (player.level === 0)
                return ask("points", game.points0 - game.points1)
            window.isPlaySingleMoveRunning = true
            player.startGenMove(game)
        }
        request.open("GET", "http://127.0.0.1:PORT/" + kind + "/" + jobs + "/" + encodeURI(said))
        request.send()
    }

    Component.onCompleted: {
        for (let i = 0; i < contentItem.resources.length; ++i) {
            const one = contentItem.resources[i]
            if (one.openFile) game = one
            if (one.startGenMove) player = one
        }
        // The window itself was told first, and has played the move.
        player.moveGenerated.connect(
            () => game.save("GAME") ? ask("saved", "") : ask("error", game.getError()))
        ask("ready", "")
    }
}
"""
NAME = "GtpStyle"
Move = tuple[str, str]
"""B or W, and its squares."""


class Trouble(Exception):
    """What Pentobi did not do, or can't."""


class Window:
    """Pentobi's window, with a home of its own in `home`. Close it."""

    def __init__(self, home: Path, program: str, level: int, seed: int) -> None:
        self.level, self.file, self.jobs = level, home / "game.blksgf", 0
        self.door = socket.create_server(("127.0.0.1", 0))
        self.door.settimeout(1.0)
        style = STYLE.replace("GAME", str(self.file)).replace("PORT", str(self.door.getsockname()[1]))
        (home / NAME).mkdir()
        (home / NAME / "ApplicationWindow.qml").write_text(style)
        (home / NAME / "qmldir").write_text(f"module {NAME}\nApplicationWindow 2.0 ApplicationWindow.qml\n")
        places = dict.fromkeys(("HOME", "XDG_RUNTIME_DIR", "QML_IMPORT_PATH"), str(home))
        drawing = {"QT_QPA_PLATFORM": "offscreen", "QT_QUICK_BACKEND": "software"}
        options = ["--nodelay", "--nobook", "--threads=1", f"--maxlevel={level}", f"--seed={seed}"]
        self.process = subprocess.Popen(
            [program, "-style", NAME, *options],
            env={**places, **drawing, "QT_QUICK_CONTROLS_FALLBACK_STYLE": "Basic", "LC_ALL": "C.UTF-8"},
            stdin=subprocess.DEVNULL, stdout=sys.stderr,
        )  # fmt: skip
        self._hear()

    def move(self, moves: list[Move], colour: str) -> str:
        """What it plays after these moves."""
        self._ask(moves, self.level)
        played: list[Move] = re.findall(r";([BW])\[([^]]*)\]", self.file.read_text())
        if played[:-1] != moves or played[-1][0] != colour:
            raise Trouble(f"Pentobi has not played for {colour}: {self.file.read_text()!r}")
        return played[-1][1]

    def ahead(self, moves: list[Move]) -> int:
        """By how many points black is ahead."""
        return round(float(self._ask(moves, 0)))

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self.door.close()

    def _ask(self, moves: list[Move], level: int) -> str:
        """level: 0 to play nothing"""
        nodes = "".join(f";{colour}[{squares}]" for colour, squares in moves)
        self.file.write_text(f"(;CA[UTF-8]GM[Blokus Duo]{nodes})")
        self.jobs += 1
        while True:
            with self.asks, contextlib.suppress(OSError):
                self.asks.sendall(b"HTTP/1.0 200 OK\r\n\r\n%d" % level)
            done, said = self._hear()
            if done == self.jobs:
                return said
            # Qt asks once more where it has lost an answer.

    def _hear(self) -> tuple[int, str]:
        """How many jobs it has been given and what it says, as it asks what to do next."""
        while not (request := self._request()):
            self.asks.close()
        _, kind, jobs, said = urllib.parse.unquote(request.decode().split()[1]).split("/", 3)
        if kind == "error":
            raise Trouble(f"Pentobi says {said!r}")
        return int(jobs), said

    def _request(self) -> bytes:
        """The first line of the next connection, or nothing: Qt may open one in vain."""
        while True:
            try:
                self.asks, _ = self.door.accept()
                break
            except TimeoutError:
                if self.process.poll() is not None:
                    raise Trouble(f"Pentobi ended with exit code {self.process.returncode}") from None
        self.asks.settimeout(10.0)
        with self.asks.makefile("rb") as lines, contextlib.suppress(OSError):
            return next(iter([*itertools.takewhile(bytes.strip, lines)]), b"")
        return b""


class Engine:
    """Answers commands. Passes are left out, as Pentobi finds them by itself."""

    def __init__(self, window: Window) -> None:
        self.window, self.moves = window, list[Move]()

    def answer(self, words: list[str]) -> str | None:
        """None if that was the last command."""
        name, *rest = words
        if name == "quit":
            return None
        try:
            return f"= {getattr(self, f'do_{name}', self.unknown)(*rest) or ''}"
        except (TypeError, Trouble) as trouble:
            return f"? {trouble}"

    def unknown(self, *words: str) -> None:
        raise Trouble("unknown command")

    def do_name(self) -> str:
        return "Pentobi's window"

    def do_protocol_version(self) -> str:
        return "2"

    def do_set_game(self, *name: str) -> None:
        if " ".join(name) != "Blokus Duo":
            raise Trouble("plays Blokus Duo only")
        self.do_clear_board()

    def do_clear_board(self) -> None:
        self.moves = []

    def do_play(self, colour: str, move: str) -> None:
        if move != "pass":
            self.moves.append((colour.upper()[:1], move))

    def do_genmove(self, colour: str) -> str:
        move = self.window.move(self.moves, colour.upper()[:1])
        self.do_play(colour, move)
        return move

    def do_final_score(self) -> str:
        ahead = self.window.ahead(self.moves)
        return f"{'B' if ahead > 0 else 'W'}+{abs(ahead)}" if ahead else "0"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", help="Pentobi itself")
    parser.add_argument("--level", type=int, required=True)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="pentobi-") as home,
        contextlib.closing(Window(Path(home), args.program, args.level, args.seed)) as window,
    ):
        engine = Engine(window)
        for line in filter(str.strip, sys.stdin):
            reply = engine.answer(line.split())
            if reply is None:
                break
            print(reply, end="\n\n", flush=True)


if __name__ == "__main__":
    main()
