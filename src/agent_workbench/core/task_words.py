"""Words of a task as its flow reads them: what they name, whether they ask for a test, and for more than its checks."""

import re

from agent_workbench.core.plan import Task

# The goal that a task in words gets beside the user's own (`drafted_goal`).
_DRAFTED = re.compile(
    r"(?:A new test(?: in \S+)? shows it, and .+ passes|The tests that fail pass, and so does .+)\.$", re.MULTILINE
)
_FAILS = r"\b(?:fail(?:s|ed|ing|ures?)?|red|broken)\b"
_TEST_FAILS = re.compile(
    rf"(?:\btests?\b|\btest_\w|\w_test\b)(?:(?!\. )[^\n;!?]){{0,80}}?{_FAILS}|{_FAILS}(?: \w+){{0,2}} tests?\b",
    re.IGNORECASE,
)
_KNOWN = re.compile(r"\b(?:the|its|these|those) failing\b", re.IGNORECASE)
_TEST = r"(?:unit |regression |failing |integration )*(?:tests?|test ?cases?|specs?)\b"
_WANTS = re.compile(
    rf"\b(?:new|an?other|more|add(?:s|ed|ing)?|writ(?:e|es|ing|ten)|creat(?:e|es|ing)|includ(?:e|es|ing)|with|needs?"
    rf"|extend(?:s|ing)?|cover(?:s|ed)?)\b(?: (?:by|a|an|the|its|some|two|three|new|more|it|this|that|in|and)){{0,3}}"
    rf" {_TEST}",
    re.IGNORECASE,
)
_MORE = re.compile(
    r"\b(?:document(?:s|ed|ation)?|docs|readme|changelog|docstrings?|comments?|rename|refactor\w*|clean ?up)\b",
    re.IGNORECASE,
)
_ANY_TEST = r"(?:\btests?\b|\btest_\w|\w_test\b)"
_KEEPS_TESTS = re.compile(
    rf"\b(?:leav|keep)\w*\b[^.;!?\n]{{0,40}}{_ANY_TEST}[^;!?\n]{{0,30}}?"
    r"\b(?:as (?:they are|it is|is)|alone|un(?:changed|touched))\b"
    rf"|\b(?:not|don['’]t|never|without)\b (?:chang|touch|edit|modif|alter)\w*\b[^;!?\n]{{0,30}}?{_ANY_TEST}",
    re.IGNORECASE,
)
_FAILING = re.compile(r"\b(?:fail(?:s|ed|ing|ures?)?|pass(?:es|ed|ing)?|red|green|broken)\b", re.IGNORECASE)
_PASSING = re.compile(
    r"((?:`[^`\n]+`(?:, and |, | and )){0,7}`[^`\n]+`)(?: (?!not\b|never\b|cannot\b)\w+){0,3} (?:pass(?:es)?|succeeds?)"
    r"(?=[.,;:!?)\n]|$| (?:again|and|now|too)\b)",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"`([^`\n]{1,200})`")
_CALLED = re.compile(r"[\w.]+\(")
MOST_CHECKS = 3
"""Number of checks that words may name; more are none, because nobody reads them."""
_EDGES = "@`'\"“”‘’.,;:!?()[]{}<>*"


def drafted_goal(words: str, where: str, check: str) -> str:
    """Return the goal of a task in words: a new test (`where`: in this file, empty: anywhere), and its check.

    Where the words say that tests fail, and ask for no other, these show it.
    """
    if _TEST_FAILS.search(words) and not _WANTS.search(_KNOWN.sub("", words)):
        return f"The tests that fail pass, and so does {check}."
    return f"A new test{f' in {where}' if where else ''} shows it, and {check} passes."


def named_checks(words: str) -> tuple[str, ...]:
    """Return the command lines of which the words say that they pass: "`make && ./tests` must pass".

    One word is the name of something else, unless it begins with `./` or stands beside a command.
    """
    found = dict[str, None]()
    for passing in _PASSING.findall(words):
        lines = [line.strip() for line in _QUOTED.findall(passing)]
        if any((" " in line or line.startswith("./")) and not _CALLED.match(line) for line in lines):
            found |= dict.fromkeys(line for line in lines if line and not _CALLED.match(line))
    return tuple(found) if len(found) <= MOST_CHECKS else ()


def stated_goal(task: Task) -> str:
    """Return the goal without the sentence that every task in words gets."""
    return _DRAFTED.sub("", task.goal).strip()


def asks_for_test(task: Task) -> bool:
    """Return True if the words or the goal ask for a test."""
    return _WANTS.search(_said(task)) is not None


def keeps_tests(task: Task) -> bool:
    """Return True if the words say that tests are to stay as they are."""
    return _KEEPS_TESTS.search(_said(task)) is not None


def wants_only_checks(task: Task) -> bool:
    """Return True if the task states nothing besides what its checks show.

    The goal of a task in words is the rest of its words; a goal that a plan states is more than its checks.
    """
    in_words = not task.goal or _DRAFTED.search(task.goal) is not None
    own = f"{task.description}\n{stated_goal(task)}\n{task.suggested_approach}"
    return in_words and not (_WANTS.search(own) or _MORE.search(own))


def is_about_failures(task: Task) -> bool:
    """Return True if the words say that something fails, or has to pass."""
    return _FAILING.search(f"{task.description}\n{stated_goal(task)}\n{task.suggested_approach}") is not None


def named_words(task: Task) -> frozenset[str]:
    """Return the words of a task that may be names of files, in lower case.

    Its acceptance commands are left out: a file that only they name is what the task is judged by.
    """
    words = _said(task).casefold().split()
    found = (word.strip(_EDGES) for word in words)
    return frozenset(part for word in found for part in (word, word.partition(":")[0]) if part)


def _said(task: Task) -> str:
    text = "\n".join((task.description, task.goal, task.suggested_approach))
    for command in sorted(task.accept_tests, key=len, reverse=True):
        text = text.replace(command, " ")
    return text
