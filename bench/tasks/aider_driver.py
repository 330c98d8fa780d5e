"""Program that aider's own interpreter runs: aider as its command line starts it, for one message.

Its argument is an object: `argv`, `message`, `reflections` (the most further answers, or null for aider's own limit),
and `report` (the file for what it counted).
"""

import json
import sys
from pathlib import Path
from typing import Any


def main(order: dict[str, Any]) -> int:
    """Run aider; write what it counted even where it fails."""
    from aider.main import main as start

    coder = start(order["argv"], return_coder=True)
    if not hasattr(coder, "run"):
        return int(coder or 1)
    if order["reflections"] is not None:
        coder.max_reflections = order["reflections"]
    end = ""
    try:
        coder.run(with_message=order["message"])
    except BaseException as error:
        end = f"{type(error).__name__}: {error}"
        raise
    finally:
        counted = {
            "malformed": coder.num_malformed_responses,
            "overflows": coder.num_exhausted_context_windows,
            "end": end,
        }
        Path(order["report"]).write_text(json.dumps(counted))
    return 0


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
