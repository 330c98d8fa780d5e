"""Skills as the catalogue lists them, and the choice of those that a task gets."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import PurePosixPath

from msgspec import Struct

from agent_workbench.core.errors import SkillError
from agent_workbench.core.patch.paths import matches_glob
from agent_workbench.core.plan import Task
from agent_workbench.core.repo.repo_map import LANGUAGES
from agent_workbench.core.task_estimates import Intent
from agent_workbench.core.text.amounts import did_you_mean, quoted

FILE = "SKILL.md"
INSTALLED = frozenset({"venv", ".venv", "__pycache__"})
"""Folders that tools put into a skill, often with thousands of files."""
ENVIRONMENTS = ("venv", ".venv")
"""Names of an environment in a skill's folder; the first with `ENVIRONMENT_MARK` is the one that scripts run in."""
ENVIRONMENT_MARK = "pyvenv.cfg"
_COMPILED = re.compile(r".+\.[a-z]+-[0-9]+(?:\.opt-[a-z0-9]+)?\.pyc", re.DOTALL)

MOST_SKILLS = 5
MOST_CONSIDERED = 20
"""Number of found skills that are read and counted; the others are named as left out."""
LEAST_SHARE = 0.35
"""A skill with a smaller share of the best one's score is not relevant."""
LEAST_WORDS = 2
"""A bundled skill whose name, patterns and languages share fewer words with the task is not relevant."""
ANY_LANGUAGE = "any"
WILD = frozenset("*?[")
"""Characters that make a pattern a glob for paths."""
NAMED = "named by the task"
OF_INTENT = "for every task that changes infrastructure"
_MORE_LANGUAGES = {".yaml": "YAML", ".yml": "YAML", ".toml": "TOML", ".json": "JSON", ".md": "Markdown", ".sql": "SQL"}
PLAYBOOK_SKILL = "ansible-playbooks"
"""Skill of tasks that change infrastructure; it comes with tools of its own."""


def is_compiled(folder: str, name: str) -> bool:
    """Return True for a compiled file as Python writes it into `__pycache__`: scripts with a repo's skill read none.

    All else in such a folder is content like any other: what imports it runs it.
    """
    return folder == "__pycache__" and _COMPILED.fullmatch(name) is not None


class SkillOrigin(StrEnum):
    """Owner of a folder of skills. Of several skills with one name that of the first origin counts."""

    REPO = "repo"
    USER = "user"
    PACKAGE = "package"


class SkillEntry(Struct, frozen=True):
    """A skill in the catalogue.

    `tokens` is the size of its text: declared by the skill, else estimated. `role` is set for skills that only one part
    of the workbench uses, such as consultants; no task chooses these. `has_files`: there is more in its folder than its
    `SKILL.md` and what tools put there. `problems` begin with file and line; a skill that
    is not `usable` has at least one.
    """

    name: str
    description: str
    origin: SkillOrigin
    folder: str
    domains: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    role: str = ""
    tokens: int = 0
    has_files: bool = False
    problems: tuple[str, ...] = ()
    usable: bool = True


class SkillPlace(Struct, frozen=True):
    """A folder that was searched for skills: how many it contains, or the `problem` such as "missing"."""

    folder: str
    origin: SkillOrigin
    skills: int = 0
    problem: str = ""


class SkillHit(Struct, frozen=True):
    """A skill that fits a search, with the words by which it was found, best first."""

    name: str
    score: float
    words: tuple[str, ...] = ()


class SkillQuery(Struct, frozen=True):
    """Description of a task by which skills are chosen.

    `words` are the task's text; without words each skill that passes the filters fits. `named` skills, each with its
    reason, come first and pass every filter. A skill passes if one of its `domains` is given, and one of its
    `languages`; nothing given is no filter. `paths` are the files of the task: a skill's pattern with `*` is a glob for
    them. `failing`: a failing check is to pass, so that a bundled skill has to be named or match a path: a long text
    has two words of each by chance.
    """

    words: str = ""
    named: Mapping[str, str] = {}
    domains: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    max_tokens: int = 2000
    failing: bool = False


class SkillCandidate(Struct, frozen=True):
    """A skill that fits a query, and why. `weak`: it fits much less than the best one."""

    entry: SkillEntry
    reason: str
    weak: bool = False


def choosable(entries: Iterable[SkillEntry]) -> tuple[SkillEntry, ...]:
    """Return the skills that a task may name or choose: those without a role."""
    return tuple(entry for entry in entries if not entry.role)


def skills_of(task: Task) -> dict[str, str]:
    """Return the skills that a task names, and the one of its intent, each with its reason."""
    skills = dict.fromkeys(task.applicable_skills, NAMED)
    if task.intent is Intent.INFRA:
        skills.setdefault(PLAYBOOK_SKILL, OF_INTENT)
    return skills


def brings_files(entry: SkillEntry) -> bool:
    """Return True if a task may choose the skill and the model may need its files.

    Those of a bundled skill are for the workbench's own tools.
    """
    return entry.has_files and entry.usable and not entry.role and entry.origin is not SkillOrigin.PACKAGE


def check_named(entries: Iterable[SkillEntry], names: Iterable[str]) -> None:
    """Raise `ConfigError` for a name that no entry has, or one that cannot be used."""
    known = {entry.name: entry for entry in entries}
    for name in names:
        entry = known.get(name)
        if entry is None:
            usable = sorted(each.name for each in known.values() if each.usable)
            raise SkillError(
                f"there is no skill {quoted(name)}{did_you_mean(name, usable)}",
                advice=f"known skills: {', '.join(usable) or 'none'}",
            )
        if not entry.usable:
            raise SkillError(f"the skill {name!r} cannot be used: {entry.problems[0]}", advice="correct that file")


def find_candidates(
    entries: Sequence[SkillEntry], hits: Iterable[SkillHit], query: SkillQuery
) -> tuple[SkillCandidate, ...]:
    """Return the skills that fit: the named ones in their order, then by relevance, shared domains, and name."""
    usable = {entry.name: entry for entry in choosable(entries) if entry.usable}
    named = [SkillCandidate(usable[name], why) for name, why in query.named.items() if name in usable]
    scored = {hit.name: hit for hit in hits}
    best = max((hit.score for hit in scored.values()), default=0.0)
    found: list[tuple[tuple[float, int, str], SkillCandidate]] = []
    for entry in usable.values():
        if entry.name in query.named or not _passes(entry, query):
            continue
        hit, matched = scored.get(entry.name), _matched_paths(entry, query.paths)
        if reason := _reason(entry, query, hit, matched):
            score = max(hit.score if hit is not None else 0.0, best if matched else 0.0)
            bundled = entry.origin is SkillOrigin.PACKAGE
            said = _shared_words(entry, hit) >= (LEAST_WORDS if bundled else 1) and not (bundled and query.failing)
            strong = matched or not query.words or said
            weak = not strong or score < best * LEAST_SHARE
            order = (-score, -len(_shared_domains(entry, query)), entry.name)
            found.append((order, SkillCandidate(entry, reason, weak=weak)))
    return (*named, *(candidate for _, candidate in sorted(found, key=lambda each: each[0])))


def fit_into(
    candidates: Iterable[SkillCandidate], tokens: Mapping[str, int], max_tokens: int
) -> Iterator[tuple[SkillCandidate, str]]:
    """Yield each candidate with the reason why it is left out, empty if it is taken.

    `tokens` are their sizes by name. A skill that does not fit is passed over; a smaller one after it may still fit.
    """
    left, count = max_tokens, 0
    for each in candidates:
        size = tokens.get(each.entry.name)
        if count == MOST_SKILLS:
            yield each, f"{MOST_SKILLS} skills are taken already"
        elif each.weak or size is None:
            yield each, "less relevant than others"
        elif size > left:
            yield each, f"{size:,} tokens do not fit into the {left:,} of {max_tokens:,} that are left"
        else:
            left, count = left - size, count + 1
            yield each, ""


def languages_of(paths: Iterable[str]) -> tuple[str, ...]:
    """Return the names of the languages of these files, in small letters, sorted."""
    known = LANGUAGES | _MORE_LANGUAGES
    suffixes = {PurePosixPath(path).suffix.lower() for path in paths}
    return tuple(sorted({known[suffix].lower() for suffix in suffixes if suffix in known}))


def languages_in(words: str) -> tuple[str, ...]:
    """Return the names of languages that a text mentions, in small letters, sorted."""
    names = {name.lower() for name in (LANGUAGES | _MORE_LANGUAGES).values() if len(name) > 2}
    said = set(words.lower().replace(",", " ").replace(".", " ").split())
    return tuple(sorted(names & said))


def _passes(entry: SkillEntry, query: SkillQuery) -> bool:
    own, languages = ({word.lower() for word in words} for words in (entry.languages, query.languages))
    speaks = not languages or not own or ANY_LANGUAGE in own or bool(own & languages)
    return speaks and (not query.domains or bool(_shared_domains(entry, query)))


def _shared_domains(entry: SkillEntry, query: SkillQuery) -> list[str]:
    wanted = {word.lower() for word in query.domains}
    return [word for word in entry.domains if word.lower() in wanted]


def _shared_words(entry: SkillEntry, hit: SkillHit | None) -> int:
    """Return how many words of the skill the task has, not counting those of its domains alone."""
    own = {entry.name, *entry.patterns, *entry.languages}
    said = set(hit.words if hit is not None else ())
    return sum(len(each.split()) for each in said if each in own or each not in entry.domains)


def _matched_paths(entry: SkillEntry, paths: Iterable[str]) -> str:
    """Return a pattern of the skill that is a glob for one of the paths, with that path; empty if there is none."""
    globs = [(each, each if "/" in each else f"**/{each}") for each in entry.patterns if WILD & set(each)]
    pairs = ((said, glob, path) for path in paths for said, glob in globs)
    return next((f"{path} ({said})" for said, glob, path in pairs if matches_glob(path, glob)), "")


def _reason(entry: SkillEntry, query: SkillQuery, hit: SkillHit | None, matched: str) -> str:
    said = ", ".join(hit.words) if hit is not None else ""
    if query.words or matched:
        return " · ".join(filter(None, (said, matched)))
    shared = _shared_domains(entry, query)
    return f"domain {', '.join(shared)}" if shared else "no words were given"
