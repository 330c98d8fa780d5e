"""A program with the command line of llama.cpp's own `llama-server`, which is no Python package."""

import argparse
import sys

from agent_workbench.adapters.llama_cpp.xllamacpp_server import main

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("-m")
    parser.add_argument("--host")
    parser.add_argument("--port", type=int)
    parser.add_argument("-np")
    parser.add_argument("-c")
    parser.add_argument("-t")
    parser.add_argument("-b")
    parser.add_argument("--alias", default="")
    given = parser.parse_args()
    assert (given.host, given.port, given.np, given.t, given.b) == ("127.0.0.1", 0, "1", "1", "512")
    sys.exit(main([given.m, "--context-tokens", given.c, "--alias", f"{given.alias} by a lookalike"]))
