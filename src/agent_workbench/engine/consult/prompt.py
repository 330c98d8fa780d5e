"""Prompt of a consultant, a pure function of what `ConsultantAsked` records."""

from collections.abc import Sequence

from agent_workbench.core.events.consult import ConsultantAsked
from agent_workbench.core.model import Message, Role

VERSION = 1
"""Version of the texts below; `ConsultantAsked.wording` records it."""
RULE = "\n---\n\n"
VERIFIER = """\
You check the answer of a consultant. Accept it if it follows the consultant's rules, answers what was asked, and \
states nothing that the question does not show. Answer with one line of JSON and nothing else: \
{"accept": true or false, "feedback": "what is wrong, in one sentence"}"""


def consult_messages(asked: ConsultantAsked, feedback: Sequence[str] = ()) -> tuple[Message, ...]:
    """Return the messages of an attempt; `feedback` is what a verifier said of the earlier ones."""
    system = RULE.join(filter(None, (asked.protocols, asked.discipline)))
    blocks = filter(None, (asked.knowledge, asked.history, asked.contents))
    user = RULE.join((*blocks, asked.task))
    said = "".join(f"\n\nPrior attempt feedback: {each}" for each in feedback)
    return Message(Role.SYSTEM, system), Message(Role.USER, f"{user}{said}")


def verifier_messages(asked: ConsultantAsked, text: str) -> tuple[Message, ...]:
    """Return the question whether an answer is to be taken."""
    question = consult_messages(asked)[1].text
    told = f"## Rules\n\n{asked.discipline}\n\n## Question\n\n{question}\n\n## Answer\n\n{text}"
    return Message(Role.SYSTEM, VERIFIER), Message(Role.USER, told)
