"""The receipt as lines of text: a heading and a table."""

from collections.abc import Iterator

from agent_workbench.core.text.amounts import dollars_text
from agent_workbench.views.receipt.receipt import ReceiptView
from agent_workbench.views.receipt.rows import ReceiptRow

HEADING = f"{'tokens':>9} {'seconds':>8}  {'read':<30} part"


def head_lines(view: ReceiptView) -> tuple[str, ...]:
    """Return the lines about the whole prompt: its size, what was read, and who answered."""
    size = f" of {view.context_tokens:,}" if view.context_tokens else ""
    share = f" ({round(100 * view.tokens / view.context_tokens)} %)" if view.context_tokens else ""
    seed = f", seed {view.seed}" if view.seed else ""
    by = " at ".join(dict.fromkeys(filter(None, (view.model, view.endpoint))))
    switched = (_switched(view),) if view.switched_from else ()
    return (f"{view.tokens:,}{size} tokens{share}", _read(view), f"{by}{seed}", *switched)


def _switched(view: ReceiptView) -> str:
    """Return the model before, and the re-read tokens; none are known if the prompt before was never answered."""
    if not (view.answered and view.tells_cache):
        return f"switched from {view.switched_from}: the prompt is read again"
    return f"switched from {view.switched_from}" + (f": {view.again:,} tokens re-read" if view.again else "")


def _read(view: ReceiptView) -> str:
    if not view.sent:
        unknown = "seconds to read unknown until this model has answered once"
        return f"not sent yet · {f'about {view.seconds:.1f} s to read' if view.seconds else unknown}"
    if not view.answered:
        return "not answered yet, so the tokens read are unknown"
    if not view.tells_cache:
        read = "the server does not report its cache"
    else:
        read = f"{view.cached:,} cached · {view.new:,} new · {view.again:,} re-read"
    told = (
        read,
        f"{view.seconds:.1f} s" if view.seconds else "",
        f"answer {view.answer_tokens:,}" if view.answer_tokens else "",
        dollars_text(view.dollars) if view.dollars else "",
    )
    return " · ".join(filter(None, told))


def table_lines(view: ReceiptView) -> Iterator[str]:
    """Yield a line for each part, indented ones for pieces of code, and the estimate of a compaction."""
    yield HEADING
    for row in view.rows:
        tokens = f"{'~' if row.estimated else ''}{row.tokens:,}"
        seconds = f"{row.seconds:.2f}" if row.seconds >= 0.005 else ""
        yield f"{tokens:>9} {seconds:>8}  {row.read:<30} {'  ' if row.inside else ''}{row.label}{_mark(row)}"
    if view.compacting is not None:
        now = view.compacting
        cost = f", about {now.seconds:.1f} s" if now.seconds >= 0.05 else ""
        yield f"a summary of the steps frees up to {now.frees:,} tokens and re-reads {now.reads:,}{cost}"


def _mark(row: ReceiptRow) -> str:
    if row.note:
        return f"  ({row.note})"
    if row.pinned:
        return "  (pinned)"
    if row.dropped:
        return f"  (dropped, frees {row.saves:,} at the next summary)" if row.saves else "  (dropped)"
    return ""
