"""A program that brings tools: one JSON request a line on standard input, one JSON answer a line on standard output.

`python tool_server.py TOOLS.json` lists the tools in the file anew at each question. The tool `write` writes into the
folder that the file `TOOLS.json.into` names, `die` ends the program, `hang` never answers, `shout` answers a megabyte.
"""

import json
import sys
import time
from pathlib import Path


def main() -> None:
    for line in sys.stdin:
        asked = json.loads(line)
        if asked["ask"] == "list":
            answer: object = json.loads(Path(sys.argv[1]).read_text())
        else:
            answer = called(asked["tool"], asked["arguments"])
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


def called(tool: str, arguments: dict[str, object]) -> object:
    match tool:
        case "die":
            sys.exit(3)
        case "hang":
            time.sleep(600)
        case "shout":
            return {"text": "x" * 1_000_000, "failed": False}
        case "write":
            Path(Path(f"{sys.argv[1]}.into").read_text(), "written.txt").write_text("by the tool\n")
        case "fail":
            return {"text": "it is broken", "failed": True}
    return {"text": f"{tool} got {json.dumps(arguments, sort_keys=True)}", "failed": False}


if __name__ == "__main__":
    main()
