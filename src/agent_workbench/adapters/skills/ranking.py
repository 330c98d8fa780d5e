"""Ranking of skills for the words of a task, by BM25 over what their front matter says."""

from collections.abc import Iterable, Sequence, Set

from agent_workbench.core.skills.entries import SkillEntry, SkillHit
from agent_workbench.core.skills.selection import ANY_LANGUAGE, WILD
from agent_workbench.ranking.small_collection import SmallCollection
from agent_workbench.ranking.stems import count_stems

NAME_WEIGHT, PATTERN_WEIGHT = 3, 2
PERCENT = " percent "
"""The sign as a word, since a sign is none."""
LEAST_DESCRIBED = 2
"""Number of words that a skill without metadata must share with the query."""


def rank_skills(entries: Sequence[SkillEntry], words: str) -> tuple[SkillHit, ...]:
    """Return the usable skills that fit the words, best first, then by name. Blocks.

    A description is prose and shares words with any task: it orders skills, but a skill is found by its name, or by one
    of its patterns, domains or languages, all words of which must occur. One that declares none of these is found by
    two words of its name and description too.
    """
    usable = [entry for entry in entries if entry.usable]
    words = words.replace("%", PERCENT)
    collection = SmallCollection([_text(entry) for entry in usable])
    wanted = count_stems(words).keys()
    hits: list[SkillHit] = []
    for ranked in collection.best(words, len(usable)):
        entry = usable[ranked.number]
        said = _said(entry, wanted)
        described = not (entry.patterns or entry.domains) and len(ranked.stems) >= LEAST_DESCRIBED
        if said or described:
            hits.append(SkillHit(entry.name, ranked.score, said or _as_written(words, ranked.stems)))
    return tuple(sorted(hits, key=lambda hit: (-hit.score, hit.name)))


def _said(entry: SkillEntry, wanted: Set[str]) -> tuple[str, ...]:
    """Return the skill's own phrases of which all words are wanted; of several with the same words the first."""
    found: dict[frozenset[str], str] = {}
    for phrase in _phrases(entry):
        stems = frozenset(count_stems(phrase))
        if stems and stems <= wanted:
            found.setdefault(stems, phrase)
    return tuple(found.values())


def _text(entry: SkillEntry) -> str:
    name, patterns = " ".join([entry.name] * NAME_WEIGHT), " ".join(entry.patterns * PATTERN_WEIGHT)
    return " ".join((name, patterns, *entry.domains, *_languages(entry), entry.description))


def _phrases(entry: SkillEntry) -> tuple[str, ...]:
    plain = (pattern for pattern in entry.patterns if not WILD & set(pattern))
    return tuple(dict.fromkeys((entry.name, *plain, *entry.domains, *_languages(entry))))


def _languages(entry: SkillEntry) -> Iterable[str]:
    return (each for each in entry.languages if each.lower() != ANY_LANGUAGE)


def _as_written(words: str, stems: Sequence[str]) -> tuple[str, ...]:
    """Return the words of a text that have these stems, as they are written there."""
    said = {stem: word.strip(".,:;!?()[]\"'`").lower() for word in words.split() for stem in count_stems(word)}
    return tuple(dict.fromkeys(said[stem] for stem in stems if stem in said))
