"""Blocks of the transcript for a chat: its start, answers, and replies in Markdown."""

import re
from collections.abc import Iterator

from agent_workbench.core.events import ChatReplied, ChatShortened, ChatStarted, Event, ModelAnswered
from agent_workbench.core.live import Streaming
from agent_workbench.core.text.chat_form import ChatForm, split_chat_answer, split_streamed
from agent_workbench.core.text.sanitizer import sanitize, sanitize_line
from agent_workbench.views.blocks import Block, Tone
from agent_workbench.views.transcript.answer_parts import split_answer
from agent_workbench.views.transcript.model_blocks import FOLD_LINES, thinking_blocks, thought_line

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_HEADING = re.compile(r" {0,3}#{1,6}[ \t]+(?P<text>\S.*)")
_QUOTE = re.compile(r" {0,3}>")


def chat_blocks(event: Event) -> list[Block]:
    """Return the blocks of an event of a chat, none for any other event."""
    match event:
        case ChatStarted():
            tools = ", ".join(sanitize_line(spec.name, 60) for spec in event.specs) or "none"
            return [
                Block("Chat", Tone.TITLE, rule=True, space_before=True),
                Block(f"It reads, and changes nothing. Tools: {tools}", Tone.DIM),
            ]
        case ChatReplied():
            cut = [Block(event.why_cut, Tone.WARN, "Reply", Tone.WARN)] if event.cut else []
            return [*reply_blocks(event.text), *cut]
        case ChatShortened():
            said = "the context is full: the older part of the conversation is no longer sent"
            return [Block(said, Tone.WARN, "Context", Tone.WARN, space_before=True)]
        case _:
            return []


def chat_answer_blocks(event: ModelAnswered) -> list[Block]:
    """Return the blocks of an answer: its thought and call. The reply is an entry of its own."""
    return [*thinking_blocks(event.reasoning), *_form_blocks(split_chat_answer(event.text))]


def streamed_chat_blocks(streaming: Streaming) -> list[Block]:
    """Return the blocks of an answer that is being written."""
    form = split_streamed(streaming.text)
    thought = [thought_line(streaming.thought)] if streaming.thought else []
    if form.reply is None:
        return [*thought, *(_form_blocks(form) or [Block("▌", Tone.DIM, "Answer", space_before=True)])]
    return [*thought, *_form_blocks(form), *reply_blocks(f"{form.reply.lstrip()}▌")]


def _form_blocks(form: ChatForm) -> list[Block]:
    blocks = [Block(sanitize(form.thought), Tone.DIM, "Thought", space_before=True)] if form.thought else []
    if form.call:
        parts = split_answer(form.call)
        blocks.append(Block(sanitize_line(parts.action), Tone.ACCENT, "Action"))
        body = sanitize(parts.body.rstrip())
        blocks += [Block(body, Tone.DIM, fold_lines=FOLD_LINES, clips=True)] if body.strip() else []
    return blocks


def reply_blocks(text: str) -> list[Block]:
    """Return Markdown as blocks: headings stand out, code is set apart; everything else stays as it is written."""
    blocks: list[Block] = []
    for tone, lines in _pieces(sanitize(text.strip("\n")).split("\n")):
        first = not blocks
        indent = 2 if tone is Tone.ACCENT else 0
        label = "Reply" if first else ""
        blocks.append(Block("\n".join(lines), tone, label, Tone.GOOD, indent=indent, space_before=first))
    return blocks


def _pieces(lines: list[str]) -> Iterator[tuple[Tone, list[str]]]:
    """Yield runs of lines of one kind. A fence without an end reaches to the last line."""
    held: list[str] = []
    kind, fence = Tone.PLAIN, ""
    for line in lines:
        mark = _FENCE.match(line)
        if mark is not None and (not fence or (mark[1].startswith(fence) and not line.strip(" `~"))):
            if held:
                yield kind, held
            held, fence = [], "" if fence else mark[1]
            kind = Tone.ACCENT if fence else Tone.PLAIN
            continue
        heading = None if fence else _HEADING.fullmatch(line)
        wanted = Tone.ACCENT if fence else Tone.STRONG if heading else Tone.DIM if _QUOTE.match(line) else Tone.PLAIN
        if wanted is not kind and held:
            yield kind, held
            held = []
        kind = wanted
        held.append(heading["text"] if heading else line)
    if held:
        yield kind, held
