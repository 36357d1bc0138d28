"""The command line in tests: the fixture `ludus` runs a command, `one_line` reads its error."""

import sys
from pathlib import Path

import pytest

from ludus import cli


@pytest.fixture
def ludus(monkeypatch, capsys, tmp_path):
    """Run a command in this process, in an empty folder or in `cwd`: (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path[:])
    monkeypatch.setenv("COLUMNS", "160")

    def ludus(*args: str, typed: str = "", cwd: Path = Path()) -> tuple[int, str, str]:
        code = 0
        try:
            with monkeypatch.context() as patch:
                lines = iter(typed.splitlines())
                patch.chdir(cwd)
                patch.setattr("builtins.input", lambda: read(lines))
                cli.main(list(args))
        except SystemExit as end:
            code = end.code or 0
        out, err = capsys.readouterr()
        return code, out, err

    def read(lines):
        for line in lines:
            return line
        raise EOFError

    return ludus


def one_line(err: str) -> str:
    """The error, which must be all there is beside what was compiled."""
    lines = [line for line in err.splitlines() if not line.startswith("compiling ")]
    assert len(lines) == 1 and lines[0].startswith("ludus: ") and "Traceback" not in err, err
    return lines[0]
