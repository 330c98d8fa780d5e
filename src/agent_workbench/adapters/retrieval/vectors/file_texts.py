"""Texts that stand for a file when it is embedded; its vector is the mean of theirs."""

# Embedding models read a few hundred tokens at once; the beginning of a long file says most.
CHARS_PER_TEXT = 1_200
MAX_TEXTS = 6
_MAX_BYTES_PER_CHAR = 4


def texts_of(data: bytes) -> list[str]:
    """Return the texts of a file, at least one: whole lines of its first characters."""
    text = data[: CHARS_PER_TEXT * MAX_TEXTS * _MAX_BYTES_PER_CHAR].decode("utf-8", "replace")
    texts: list[str] = []
    while text and len(texts) < MAX_TEXTS:
        end = text.rfind("\n", 0, CHARS_PER_TEXT) + 1 if len(text) > CHARS_PER_TEXT else 0
        end = end or CHARS_PER_TEXT
        texts.append(text[:end])
        text = text[end:]
    return [text for text in texts if text.strip()] or ["empty"]
