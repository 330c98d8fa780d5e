"""What stands around a diff in an answer or a mail."""

from random import Random

_BEFORE = (
    "Here is the change you asked for:\n\n",
    "I looked at the code and I think this fixes it.\n\n- it keeps the old name\n- it adds no dependency\n\n",
    "Sure! The following patch does it.\n",
)
_AFTER = (
    "\nLet me know if you want tests, too.\n",
    "\nThis change:\n1. renames nothing\n2. keeps every caller working\n",
    "\n-- \nSent from my terminal\n",
)


def fenced_as_diff(text: str, random: Random) -> str | None:
    """The diff stands in a fence that says so."""
    return f"```{random.choice(['diff', 'patch'])}\n{text}```\n"


def fenced(text: str, random: Random) -> str | None:
    """The diff stands in a plain fence."""
    fence = random.choice(["```", "~~~", "````"])
    return f"{fence}\n{text}{fence}\n"


def talked_around(text: str, random: Random) -> str | None:
    """Prose stands before the diff, and mostly behind it; a fence may hold it."""
    before = random.choice(_BEFORE)
    form = random.randrange(3)
    if form < 2:
        return before + text + (random.choice(_AFTER) if form else "")
    return f"{before}```diff\n{text}```\n{random.choice(_AFTER)}"
