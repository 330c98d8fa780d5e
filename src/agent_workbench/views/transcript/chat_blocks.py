"""Blocks of the transcript for a chat: its start, answers, and replies in Markdown."""

from agent_workbench.core.events import ChatReplied, ChatShortened, ChatStarted, Event, ModelAnswered
from agent_workbench.core.live import Streaming
from agent_workbench.core.text.chat_form import ChatForm, split_chat_answer, split_streamed
from agent_workbench.core.text.sanitizer import sanitize, sanitize_line
from agent_workbench.views.blocks import Block, Tone
from agent_workbench.views.transcript.answer_parts import split_answer
from agent_workbench.views.transcript.model_blocks import FOLD_LINES, thinking_blocks, thought_line


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
            return [_reply_block(event.text, markdown=True), *cut]
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
    return [*thought, *_form_blocks(form), _reply_block(f"{form.reply.lstrip()}▌", markdown=False)]


def _form_blocks(form: ChatForm) -> list[Block]:
    blocks = [Block(sanitize(form.thought), Tone.DIM, "Thought", space_before=True)] if form.thought else []
    if form.call:
        parts = split_answer(form.call)
        blocks.append(Block(sanitize_line(parts.action), Tone.ACCENT, "Action"))
        body = sanitize(parts.body.rstrip())
        blocks += [Block(body, Tone.DIM, fold_lines=FOLD_LINES, clips=True)] if body.strip() else []
    return blocks


def _reply_block(text: str, *, markdown: bool) -> Block:
    said = sanitize(text.strip("\n"))
    return Block(said, label="Reply", label_tone=Tone.GOOD, space_before=True, markdown=markdown)
