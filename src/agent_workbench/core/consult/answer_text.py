"""Text of a consultant's answer: stray JSON is cut off, and its length is bounded."""

MAX_ANSWER_CHARS = 100_000
_OPEN, _FENCE = "```json", "```"
_NAMES = ('"status"', '"phase"')


def without_stray_json(text: str) -> str:
    """Return the text without a last block of JSON that reports a status and a phase, and without trailing blanks."""
    kept = text.rstrip()
    if not kept.endswith(_FENCE):
        return kept
    start = kept.rfind(_OPEN, 0, len(kept) - len(_FENCE))
    if start < 0 or not all(name in kept[start:] for name in _NAMES):
        return kept
    inside = kept[start + len(_OPEN) : -len(_FENCE)]
    return kept if _FENCE in inside else kept[:start].rstrip()


def bounded(text: str) -> tuple[str, int]:
    """Return at most `MAX_ANSWER_CHARS` characters of the text, and how many are left out."""
    return text[:MAX_ANSWER_CHARS], max(0, len(text) - MAX_ANSWER_CHARS)
