"""Sections of all verbs of the command line, with their arguments and flags."""

import argparse
from collections.abc import Iterator

from agent_workbench.cli.main import GROUPS, parser
from docgen.markdown import code, plain, table


def commands() -> str:
    """Return a section for each verb, by what one wants to do."""
    verbs = _below(parser())
    sections = []
    for title, group in GROUPS:
        sections.append(f"## {title.capitalize()}")
        for verb in group:
            sections += _sections(verbs[verb.name])
    return "\n\n".join(sections)


def _below(verb: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    actions = [each for each in verb._actions if isinstance(each, argparse._SubParsersAction)]
    return dict(actions[0].choices) if actions else {}


def _sections(verb: argparse.ArgumentParser, level: int = 3) -> Iterator[str]:
    words = " ".join([_name(verb), *filter(None, map(_word, _own(verb)))])
    yield f"{'#' * level} {_name(verb)}"
    if verb.description:
        yield plain(verb.description.split("\n\n")[0])
    if words != _name(verb):
        yield code(words)
    if _own(verb):
        yield table(("argument", "meaning"), ((_spelling(each), plain(_help(verb, each))) for each in _own(verb)))
    if verb.epilog:
        yield f"{verb.epilog[0].upper()}{verb.epilog[1:]}."
    for each in _below(verb).values():
        yield from _sections(each, level + 1)


def _name(verb: argparse.ArgumentParser) -> str:
    # `prog` of a verb below others repeats the arguments of those above it.
    return " ".join(word for word in verb.prog.split() if word.replace("-", "").isalpha() and word.islower())


def _own(verb: argparse.ArgumentParser) -> list[argparse.Action]:
    hidden = (argparse._HelpAction, argparse._SubParsersAction)
    return [each for each in verb._actions if not isinstance(each, hidden) and each.help is not argparse.SUPPRESS]


def _word(action: argparse.Action) -> str:
    """Return a positional argument as a usage line has it, nothing for a flag."""
    if action.option_strings:
        return ""
    name = _value(action)
    return {"?": f"[{name}]", "*": f"[{name} ...]", "+": f"{name} ..."}.get(str(action.nargs), name)


def _spelling(action: argparse.Action) -> str:
    if not action.option_strings:
        return code(_value(action))
    value = "" if action.nargs == 0 else f" {_value(action)}"
    return ", ".join(code(f"{each}{value}") for each in action.option_strings)


def _value(action: argparse.Action) -> str:
    if isinstance(action.metavar, str):
        return action.metavar
    return action.dest.upper()


def _help(verb: argparse.ArgumentParser, action: argparse.Action) -> str:
    text = (action.help or "") % {**vars(action), "prog": verb.prog}
    if action.choices is not None and action.metavar is None:
        text = f"{text}{': ' if text else ''}{', '.join(code(str(each)) for each in action.choices)}"
    return text
