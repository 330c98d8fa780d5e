"""Quality of a code search: questions with known answers, and figures of what a method finds."""

import re
from collections.abc import Sequence

from msgspec import Struct

MIN_WORDS = 3
MAX_ANSWERS = 3
FIRST = 10


class FileQuestion(Struct, frozen=True):
    """A commit message as a question, and the files that answer it. `strict`: it names none of them."""

    text: str
    answers: tuple[str, ...]
    strict: bool


class SearchFigures(Struct, frozen=True):
    """Figures of one method: recall among the first results, mean reciprocal rank, seconds for one question."""

    method: str
    questions: int
    recall: float
    reciprocal_rank: float
    seconds: float


def file_question(message: str, answers: Sequence[str]) -> FileQuestion | None:
    """Return the question that a past commit asks; None if it says too little or touched too many files."""
    if not 0 < len(answers) <= MAX_ANSWERS or len(re.findall(r"[^\W\d_]{2,}", message)) < MIN_WORDS:
        return None
    said = set(re.findall(r"\w+", message.lower()))
    names = {answer.rsplit("/", 1)[-1].split(".")[0].lower() for answer in answers}
    return FileQuestion(message, tuple(answers), said.isdisjoint(names))


def measure_search(
    method: str, questions: Sequence[FileQuestion], ranked: Sequence[Sequence[str]], seconds: float
) -> SearchFigures:
    """Return the figures of one method; `ranked` are its results for each question, best first.

    `seconds` is the average time for one question.
    """
    recalls, reciprocals = [], []
    for question, files in zip(questions, ranked, strict=True):
        recalls.append(len(set(question.answers).intersection(files[:FIRST])) / len(question.answers))
        hits = [1 / rank for rank, path in enumerate(files, 1) if path in question.answers]
        reciprocals.append(hits[0] if hits else 0.0)
    many = max(1, len(questions))
    return SearchFigures(method, len(questions), sum(recalls) / many, sum(reciprocals) / many, seconds)
