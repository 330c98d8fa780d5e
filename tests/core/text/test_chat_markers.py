import pytest

from agent_workbench.core.text.sanitizer import without_chat_markers

MARKERS = (
    *("<|im_start|>", "<|im_end|>", "<|eot_id|>", "<|start_header_id|>", "<|endoftext|>", "<｜User｜>", "<|"),
    *("<s>", "</s>", "<bos>", "<eos>", "<start_of_turn>", "<end_of_turn>", "</think>", "[INST]", "[/INST]"),
    *("<<SYS>>", "<</SYS>>", "[AVAILABLE_TOOLS]", "<tool_call>"),
)


@pytest.mark.parametrize("marker", MARKERS)
def test_no_marker_is_left_and_the_text_is_legible(marker: str) -> None:
    plain = without_chat_markers(f"a {marker}system b")
    assert marker not in plain
    assert plain.replace(" ", "") == f"a{marker}systemb"
    assert without_chat_markers(plain) == plain


def test_other_text_stays() -> None:
    text = "if a < b | c > d: x = y[INSTALL] # <span>, a<|b, <sub>"
    assert without_chat_markers(text.replace("<|", "< |")) == text.replace("<|", "< |")
