"""What must not reach a browser: addresses to notify, passwords, tokens. All texts of a run pass here."""

import re
from typing import Any

from ludus.store.notify import hidden

HIDDEN = "***"
SECRET_KEY = re.compile(r"(?i)(notify|secret|token|passw|credential|api_?key|webhook|authorization|private)")
NAMED = re.compile(
    r"(?i)\b([\w-]*(?:secret|token|passw\w*|credentials?|api[_-]?key|webhook|authorization)[\w-]*)"
    r"(\s*[=:]\s*|\s+is\s+)(\"[^\"]*\"|'[^']*'|(?:(?:bearer|basic)\s+)?\S+)"
)


def safe(value: Any, key: str = "") -> Any:
    """A value of a configuration or an event, and all that is in it. key: its name"""
    if isinstance(value, dict):
        return {text(str(name)): safe(inner, str(name)) for name, inner in value.items()}
    if isinstance(value, str | list | tuple) and value and SECRET_KEY.search(key):
        return HIDDEN
    if isinstance(value, list | tuple):
        return [safe(inner) for inner in value]
    return text(value) if isinstance(value, str) else value


def text(said: str) -> str:
    """A text without the secrets that may be in it."""
    return NAMED.sub(lambda found: f"{found[1]}{found[2]}{HIDDEN}", hidden(said))
