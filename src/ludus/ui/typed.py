"""What people type at a prompt."""

import sys

from rich.console import Console
from rich.markup import escape

from ludus.core.errors import Failure


def typed(console: Console, prompt: str, markup: bool = True) -> str:
    """One line, without spaces around it. markup: whether the prompt has styles"""
    console.print(prompt, end="", markup=markup)
    try:
        answer = input().strip()
    except EOFError:
        console.print()
        raise Failure("input ended before the game was over (q quits)") from None
    if not sys.stdin.isatty():
        console.print(escape(answer))  # so that the output of piped moves reads like a game
    return answer
