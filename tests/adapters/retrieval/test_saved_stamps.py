"""Stamps as bytes: they come back as they were, and nothing else is taken for them."""

import pytest

from agent_workbench.adapters.retrieval.folder_index import decode_stamps, encode_stamps
from agent_workbench.adapters.retrieval.indexable_files import FileStamp

HEADER = {"format": "1"}
STAMPS = {"b.py": FileStamp(1, 2, 3, 4), "a.bin": FileStamp(5, 6, 7, 8), "new.py": FileStamp(9, 9, 9, 9, fresh=True)}


def test_stamps_come_back_and_a_fresh_one_is_equal_to_no_later_one() -> None:
    data = encode_stamps(STAMPS, ["b.py", "new.py"], HEADER)
    found = decode_stamps(data, ["b.py", "new.py"], HEADER)
    assert found == STAMPS | {"new.py": FileStamp(9, 9, -1, 9)}
    assert decode_stamps(data, ["b.py", "new.py"], {"format": "2"}) is None
    assert decode_stamps(data, ["b.py"], HEADER) is None


@pytest.mark.parametrize("head", [b"", b"{}", b"[1, 2]", b'[{"format": "1"}, 0, [7]]', b"[" * 100_000], ids=len)
def test_what_was_not_encoded_is_no_stamps(head: bytes) -> None:
    assert decode_stamps(len(head).to_bytes(4, "little") + head, [], HEADER) is None
