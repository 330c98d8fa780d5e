"""GBNF of whole numbers within bounds, digit by digit."""


def integer_range(low: int, high: int) -> str:
    """Return a GBNF expression that matches exactly the integers from `low` to `high`."""
    ways: list[str] = []
    if low < 0:
        # Minus zero is left out.
        ways += [f'"-" {way}' for way in _positive(max(1, -high), -low)] if high < 0 else _negatives(-low)
    if high >= 0:
        ways += _positive(max(0, low), high)
    return f"({' | '.join(ways)})"


def _negatives(most: int) -> list[str]:
    return [f'"-" {way}' for way in _positive(1, most)]


def _positive(low: int, high: int) -> list[str]:
    """Return GBNF alternatives for a range of integers that are not negative."""
    ways: list[str] = []
    for width in range(len(str(low)), len(str(high)) + 1):
        first = max(low, 10 ** (width - 1) if width > 1 else 0)
        last = min(high, 10**width - 1)
        ways += _of_width(str(first), str(last))
    return ways


def _of_width(low: str, high: str) -> list[str]:
    """Return GBNF alternatives for a range whose bounds have the same number of digits."""
    if low == high:
        return [f'"{low}"']
    first, last, rest = low[0], high[0], len(low) - 1
    if first == last:
        return [f'"{first}" ({" | ".join(_of_width(low[1:], high[1:]))})']
    if not rest:
        return [f"[{first}-{last}]"]
    ways: list[str] = []
    lowest, highest = int(first), int(last)
    if low[1:].strip("0"):
        ways.append(f'"{first}" ({" | ".join(_of_width(low[1:], "9" * rest))})')
        lowest += 1
    if high[1:].strip("9"):
        ways.append(f'"{last}" ({" | ".join(_of_width("0" * rest, high[1:]))})')
        highest -= 1
    if lowest <= highest:
        digit = f"[{lowest}-{highest}]" if lowest < highest else f'"{lowest}"'
        ways.append(f"{digit} [0-9]{{{rest}}}")
    return ways
