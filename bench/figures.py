"""How every benchmark prints what it measured: `figure NAME VALUE UNIT`."""

measured: dict[str, tuple[float, str]] = {}


def figure(name: str, value: float, unit: str) -> None:
    measured[name] = value, unit
    print(f"figure {name} {short(value)} {unit}", flush=True)


def short(value: float) -> str:
    return f"{value:.4g}" if value < 1e4 else f"{value:.0f}"
