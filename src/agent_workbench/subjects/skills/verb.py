"""`agent skills`: list, show, choose and check the skills that a task may use, and set up their environments."""

import argparse
import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import to_builtins

from agent_workbench.cli.options import add_verb, whole_number
from agent_workbench.cli.output import say, say_aside, say_json
from agent_workbench.cli.questions import agrees
from agent_workbench.core.errors import ExitCode
from agent_workbench.core.session_request import Invocation
from agent_workbench.core.text.amounts import counted_text
from agent_workbench.core.text.sanitizer import sanitize_line

if TYPE_CHECKING:
    from agent_workbench.core.skills import SkillEntry, SkillPlace

MOST_TOKENS = 1_000_000
DESCRIPTION_CHARS = 200
CHOOSE_EXIT = "exit code: 0 a skill is chosen; 1 none fits"
CHECK_EXIT = "exit code: 0 every skill can be used; 1 one cannot"
SETUP_EXIT = "exit code: 0 the environment is there, or none is needed; 3 nobody agreed to make it"


def configure(verb: argparse.ArgumentParser) -> None:
    """Add the verbs below it with their flags, and the function that each of them runs."""
    verb.set_defaults(execute=list_all)
    below = verb.add_subparsers(title="verbs", metavar="VERB")
    listed = add_verb(below, "list", "list the skills with their size, and the folders that were searched", list_all)
    shown = add_verb(below, "show", "show one skill: what is known of it, and its text", show)
    shown.add_argument("name", help="its name in the list")
    chosen = add_verb(below, "choose", "show which skills fit words, domains and languages, and why", choose)
    chosen.epilog = CHOOSE_EXIT
    chosen.add_argument("words", nargs="*", metavar="WORDS", help="the words of a task; without them every skill fits")
    chosen.add_argument("--domain", action="append", default=[], metavar="NAME", help="one of its domains (repeatable)")
    chosen.add_argument("--language", action="append", default=[], metavar="NAME", help="a language (repeatable)")
    chosen.add_argument(
        "--max-tokens",
        type=whole_number(0, MOST_TOKENS),
        metavar="N",
        help="limit for all together (skills.max_tokens)",
    )
    checked = add_verb(below, "check", "check every SKILL.md, also of a repository that is not trusted", check)
    checked.epilog = CHECK_EXIT
    made = add_verb(below, "setup", "make the environment that the scripts of a skill run in", setup)
    made.epilog = SETUP_EXIT
    made.add_argument("name", help="the skill's name in the list")
    made.add_argument("--yes", action="store_true", help="do it without asking")
    verb.set_defaults(json=False)
    for each in (listed, shown, chosen, checked, made):
        each.add_argument("--json", action="store_true", help="a line of JSON for each")


def list_all(options: argparse.Namespace) -> int:
    """Print a line for each skill that a task may use, the names of the others, and the folders that were searched."""
    from agent_workbench.subjects.skills.calls import list_skills

    found = asyncio.run(list_skills(_invocation(), say_aside))
    if options.json:
        for entry in found.skills:
            say_json(to_builtins(entry))
        return ExitCode.DONE
    aside = [entry for entry in found.skills if entry.role and entry.usable]
    for entry in found.skills:
        if entry not in aside:
            say(_line(entry))
    if aside:
        say(f"for consultants alone: {', '.join(entry.name for entry in aside)}")
    say(f"searched: {', '.join(map(_place, found.places))}")
    return ExitCode.DONE


def show(options: argparse.Namespace) -> int:
    """Print what is known of a skill, and its text."""
    from agent_workbench.subjects.skills.calls import show_skill

    entry, text = asyncio.run(show_skill(_invocation(), options.name, say_aside))
    if options.json:
        say_json({**to_builtins(entry), "text": text})
        return ExitCode.DONE
    told = (
        ("skill", entry.name),
        ("description", entry.description),
        ("domains", ", ".join(entry.domains)),
        ("languages", ", ".join(entry.languages)),
        ("patterns", ", ".join(entry.patterns)),
        ("role", entry.role),
        ("tokens", f"about {entry.tokens:,}"),
        ("from", f"{entry.folder} ({entry.origin})"),
        *(("problem", problem) for problem in entry.problems),
    )
    for label, value in told:
        if value:
            say(f"{label + ':':<13}{sanitize_line(value, 2_000)}")
    say(f"\n{text}")
    return ExitCode.DONE


def choose(options: argparse.Namespace) -> int:
    """Print the skills that fit, the most relevant first, and those that are left out."""
    from agent_workbench.core.skills import SkillQuery
    from agent_workbench.subjects.skills.calls import choose_skills

    query = SkillQuery(words=" ".join(options.words), domains=tuple(options.domain), languages=tuple(options.language))
    choice = asyncio.run(choose_skills(_invocation(), query, options.max_tokens, say_aside))
    if options.json:
        for each in choice.skills:
            say_json({"name": each.name, "chosen": True, "tokens": each.tokens, "reason": each.reason})
        for out in choice.left_out:
            say_json({"name": out.name, "chosen": False, "tokens": out.tokens, "reason": out.reason})
    else:
        for each in choice.skills:
            say(f"{each.name}  {each.tokens:,} tokens  ({each.reason})")
        for out in choice.left_out:
            say_aside(f"left out: {out.name}: {out.reason}")
        if not choice.skills:
            say_aside("no skill fits")
    return ExitCode.DONE if choice.skills else ExitCode.FAILED


def check(options: argparse.Namespace) -> int:
    """Print the problems of all skills and of the folders that were searched."""
    from agent_workbench.subjects.skills.calls import check_skills

    found = asyncio.run(check_skills(_invocation()))
    for entry in found.skills:
        if options.json:
            say_json({"name": entry.name, "usable": entry.usable, "problems": list(entry.problems)})
            continue
        for problem in entry.problems:
            say(f"{'warning' if entry.usable else 'error'}: {problem}")
    unread = [place for place in found.places if place.problem not in {"", "missing"}]
    for place in unread:
        say_aside(f"warning: {_place(place)}")
    useless = sum(not entry.usable for entry in found.skills)
    if not options.json:
        unusable = f"{useless:,} of them cannot be used" if useless else "all of them can be used"
        say(f"{counted_text(len(found.skills), 'skill')}, {unusable}")
    return ExitCode.FAILED if useless else ExitCode.DONE


def setup(options: argparse.Namespace) -> int:
    """Show what would be installed and from where, ask, and do it. Without a terminal only `--yes` does it."""
    from agent_workbench.subjects.skills.calls import plan_setup

    maker, planned = asyncio.run(plan_setup(_invocation(), options.name, say_aside))
    if not options.json:
        say("\n".join(planned.lines))
    agreed = planned.asks and (options.yes or agrees("do this?"))
    if agreed:
        say_aside("setting it up; packages may take a minute")
    installed = asyncio.run(maker.carry_out(planned)) if agreed else ()
    if options.json:
        say_json({"name": options.name, "plan": list(planned.lines), "done": agreed or not planned.asks})
    elif agreed:
        say(f"done: {', '.join(installed) or 'no packages'}")
    elif planned.asks:
        say_aside(f"nothing was done; `agent skills setup {options.name} --yes` does exactly this")
    return ExitCode.DONE if agreed or not planned.asks else ExitCode.PARKED


def _line(entry: "SkillEntry") -> str:
    if not entry.usable:
        return f"{entry.name}  left out: {'; '.join(entry.problems)}"
    facts = ", ".join(filter(None, (f"about {entry.tokens:,} tokens", str(entry.origin), entry.role)))
    problems = "".join(f"\n    {problem}" for problem in entry.problems)
    return f"{entry.name}  ({facts})\n    {sanitize_line(entry.description, DESCRIPTION_CHARS)}{problems}"


def _place(place: "SkillPlace") -> str:
    return f"{place.folder} ({place.problem or place.skills})"


def _invocation() -> Invocation:
    return Invocation(Path.cwd(), os.environ, {})
