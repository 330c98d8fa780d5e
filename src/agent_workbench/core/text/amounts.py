"""Numbers and amounts as text for a person, and times as a person writes them."""

import re

_TIME = re.compile(r"([1-9][0-9]{0,4})\s?(min|h|d)", re.ASCII)
_SECONDS = {"min": 60, "h": 3_600, "d": 86_400}


def dollars_text(dollars: float) -> str:
    """Return a price: cents if it has some, else four decimal places; a cost is never shown as zero."""
    if dollars >= 1:
        return f"${dollars:,.2f}"
    return f"${dollars:.4f}" if dollars >= 0.0001 else "< $0.0001"


def bytes_text(size: int) -> str:
    """Return a size such as `0 kB`, `12 kB`, `3.4 MB` or `1.2 GB`."""
    if size < 1_000_000:
        return f"{-(-size // 1000)} kB"
    return f"{size / 1e6:,.1f} MB" if size < 1_000_000_000 else f"{size / 1e9:,.1f} GB"


def counted_text(many: int, what: str) -> str:
    """Return `1 task` or `12 tasks`."""
    return f"{many:,} {what}{'' if many == 1 else 's'}"


def span_text(first: int, last: int) -> str:
    """Return `step 3` or `steps 1–12`."""
    return f"step {first}" if first == last else f"steps {first}–{last}"


def time_seconds(text: str) -> int | None:
    """Return the seconds of a time such as `30min`, `12h` or `3d`, None for any other text."""
    match = _TIME.fullmatch(text)
    return int(match[1]) * _SECONDS[match[2]] if match is not None else None
