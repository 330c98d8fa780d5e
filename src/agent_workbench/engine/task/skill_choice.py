"""Choice of the skills in a task's prompts: found by its words, counted, and taken whole within the budget."""

from collections.abc import Awaitable, Callable, Sequence

from msgspec import Struct

from agent_workbench.core.errors import ModelError
from agent_workbench.core.events import Author, SkillLeftOut, SkillsChosen, SkillText, TaskStarted
from agent_workbench.core.intents import ChooseSkill
from agent_workbench.core.model import Purpose
from agent_workbench.core.outcomes import Accepted, Outcome, Refused
from agent_workbench.core.plan import Task
from agent_workbench.core.ports.extensions import Skills
from agent_workbench.core.ports.workspace import Workspace
from agent_workbench.core.settings.models import USUAL_CONTEXT_TOKENS
from agent_workbench.core.skills import (
    MOST_CONSIDERED,
    SkillEntry,
    SkillQuery,
    check_named,
    choosable,
    find_candidates,
    fit_into,
    languages_in,
    languages_of,
    skills_of,
)
from agent_workbench.core.state.session_state import TaskRun
from agent_workbench.core.text.mentions import looks_like_path
from agent_workbench.engine.prompt.task_text import SKILLS_FIRST, skill_text
from agent_workbench.engine.runtime.session_context import SessionContext

CHARS_PER_TOKEN = 4
MOST_FOLD = 8
"""A skill is too large to be read if its estimated tokens are this many times the budget."""
BY_USER = "chosen by the user"
DROPPED = "dropped by the user"
Count = Callable[[Sequence[str]], Awaitable[tuple[int, ...]]]


class SkillChoice(Struct, frozen=True):
    """Skills that are taken, in the order of their relevance, and those that fit but are left out."""

    skills: tuple[SkillText, ...]
    left_out: tuple[SkillLeftOut, ...]


async def pick_skills(catalogue: Skills, query: SkillQuery, count: Count) -> SkillChoice:
    """Return the choice for a query; `count` returns the tokens of texts. The same catalogue gives the same choice.

    Raises `ConfigError` for a named skill that is unknown or cannot be used.
    """
    entries = choosable(await catalogue.list())
    check_named(entries, query.named)
    hits = await catalogue.rank(query.words) if query.words else ()
    found = find_candidates(entries, hits, query)
    # What is far too large is not even read and counted.
    large = {each.entry.name: each.entry.tokens for each in found if each.entry.tokens > MOST_FOLD * query.max_tokens}
    wanted = [each.entry.name for each in found if not (each.weak or each.entry.name in large)]
    read = await catalogue.load(wanted[:MOST_CONSIDERED])
    texts = {each.name: each.text for each in read}
    counted = await count([skill_text(each) for each in read]) if read else ()
    tokens = large | dict(zip(texts, counted, strict=True))
    taken: list[SkillText] = []
    left_out: list[SkillLeftOut] = []
    for each, reason in fit_into(found, tokens, query.max_tokens):
        name = each.entry.name
        if reason:
            left_out.append(SkillLeftOut(name, f"{reason} ({each.reason})", tokens.get(name, 0)))
        else:
            taken.append(SkillText(name, texts[name], each.reason, tokens[name]))
    return SkillChoice(tuple(taken), tuple(left_out))


async def takable_skills(catalogue: Skills, words: str = "") -> tuple[SkillEntry, ...]:
    """Return the usable skills whose names hold each of the words, by name."""
    wanted = words.lower().split()
    usable = (each for each in choosable(await catalogue.list()) if each.usable)
    return tuple(each for each in usable if all(word in each.name for word in wanted))


async def estimate_tokens(texts: Sequence[str]) -> tuple[int, ...]:
    """Return the tokens of texts, estimated from their characters."""
    return tuple(len(text) // CHARS_PER_TOKEN + 1 for text in texts)


async def choose_skills(session: SessionContext, workspace: Workspace, words: str, paths: Sequence[str]) -> None:
    """Record the skills for the task with these words and files, unless they are recorded or none fits."""
    if not _records_choices(session.run) or session.run.skills is not None:
        return
    session.publisher.show_activity("choosing skills")
    task, settings = session.run.definition, session.settings.skills
    query = await _query(workspace, task, words, paths, settings.max_tokens, failing=session.run.tries_afresh)
    counter = _TokenCounter(session)
    choice = await pick_skills(session.ports.skills, query, counter.count)
    if not choice.skills and not choice.left_out:
        return
    for each in choice.left_out:
        if each.name in query.named:
            session.publisher.notify(f"the skill {each.name} is left out: {each.reason}")
    await session.record(
        SkillsChosen(
            session.run.task,
            choice.skills,
            choice.left_out,
            max_tokens=settings.max_tokens,
            counted=counter.counted,
        )
    )


async def change_skill(session: SessionContext, run: TaskRun, intent: ChooseSkill) -> Outcome:
    """Record the choice with one skill added or dropped by the user; raise `ConfigError` for an unknown one."""
    if not _records_choices(run):
        return Refused("the skills of this task were chosen by an older version, and cannot be changed")
    before = run.skills or SkillsChosen(run.task, (), max_tokens=session.settings.skills.max_tokens)
    taken = {each.name: each for each in before.skills}
    left_out = tuple(each for each in before.left_out if each.name != intent.name)
    if (intent.name in taken) == intent.chosen:
        return Refused(f"the skill {intent.name} is {'already' if intent.chosen else 'not'} in the prompt")
    if not intent.chosen:
        dropped = taken.pop(intent.name)
        choice = SkillChoice(tuple(taken.values()), (*left_out, SkillLeftOut(dropped.name, DROPPED, dropped.tokens)))
        return await _record_change(session, before, choice, counted=before.counted)
    check_named(choosable(await session.ports.skills.list()), (intent.name,))
    (loaded,) = await session.ports.skills.load((intent.name,))
    counter = _TokenCounter(session)
    (tokens,) = await counter.count([skill_text(loaded)])
    facts = session.state.model_for(Purpose.EXECUTOR)
    context = (facts.context_tokens if facts is not None else 0) or (
        session.settings.model.context_tokens or USUAL_CONTEXT_TOKENS
    )
    if tokens > context // 2:
        return Refused(f"the skill {loaded.name} has {tokens:,} tokens, more than half of the context of {context:,}")
    skills = (*before.skills, SkillText(loaded.name, loaded.text, BY_USER, tokens))
    return await _record_change(session, before, SkillChoice(skills, left_out), counted=counter.counted)


async def _record_change(
    session: SessionContext, before: SkillsChosen, choice: SkillChoice, *, counted: bool
) -> Outcome:
    most = before.max_tokens
    await session.record(
        SkillsChosen(before.task, choice.skills, choice.left_out, Author.USER, max_tokens=most, counted=counted)
    )
    total = sum(each.tokens for each in choice.skills)
    over = f"the skills take {total:,} tokens now; skills.max_tokens is {most:,}"
    return Accepted(over if total > most else "")


async def _query(
    workspace: Workspace, task: Task, words: str, paths: Sequence[str], max_tokens: int, *, failing: bool
) -> SkillQuery:
    named = (*task.scope.allowed_write_globs, *paths, *filter(looks_like_path, words.split()))
    spoken = languages_of(named) or languages_of(await workspace.list_files())
    return SkillQuery(
        words=words,
        named=skills_of(task),
        languages=(*spoken, *languages_in(words)) if spoken else (),
        paths=tuple(each for each in named if "*" not in each),
        max_tokens=max_tokens,
        failing=failing,
    )


def _records_choices(run: TaskRun) -> bool:
    started = run.history[0].event if run.history else None
    return isinstance(started, TaskStarted) and started.wording >= SKILLS_FIRST


class _TokenCounter:
    """Counter of tokens by the executor's model; `counted` is False where it had to estimate."""

    def __init__(self, session: SessionContext) -> None:
        self._session = session
        self.counted = False

    async def count(self, texts: Sequence[str]) -> tuple[int, ...]:
        """Return the tokens of each text as it is sent, estimated if no server counts them."""
        ports = self._session.ports
        sent = [ports.redacted(text) for text in texts]
        try:
            tokens = await ports.model.count_tokens(sent, Purpose.EXECUTOR)
        except ModelError:
            tokens = ()  # the next question to the model reports it
        self.counted = bool(tokens) and all(tokens)
        return tokens if self.counted else await estimate_tokens(sent)
