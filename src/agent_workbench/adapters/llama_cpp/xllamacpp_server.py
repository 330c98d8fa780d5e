"""HTTP server of llama.cpp in this process.

Run as `python -m agent_workbench.adapters.llama_cpp.xllamacpp_server MODEL.gguf`.

The API key comes from `LLAMA_API_KEY`; without one nothing is served. Once the model is loaded the line
`listening on http://127.0.0.1:PORT` is written to standard output. A signal ends it; there is nothing to clean up.
"""

import argparse
import os
import signal
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xllamacpp import CommonParams

API_KEY_VARIABLE = "LLAMA_API_KEY"


def main(arguments: list[str]) -> int:
    """Serve until a signal ends the process; return 2 if the API key is missing."""
    given = _parser().parse_args(arguments)
    # Removed, so that nothing loaded later finds it.
    api_key = os.environ.pop(API_KEY_VARIABLE, "")
    if not api_key:
        sys.stderr.write(f"{API_KEY_VARIABLE} is not set; without a key any process or web page could ask\n")
        return 2
    from xllamacpp import Server

    try:
        server = Server(_parameters(given, api_key))
    except RuntimeError:
        # llama.cpp has written the cause; the exception does not contain it.
        return 1
    sys.stdout.write(f"listening on {server.listening_address}\n")
    sys.stdout.flush()
    while True:
        signal.pause()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", help="a GGUF file")
    parser.add_argument("--context-tokens", type=int, default=0, help="0: as many as the model was trained with")
    parser.add_argument("--threads", type=int, default=0, help="0: llama.cpp's own choice")
    parser.add_argument("--gpu-layers", type=int, default=None, help="without it llama.cpp's own choice")
    parser.add_argument("--cache-type", choices=("f16", "q8_0", "q4_0"), default="f16")
    parser.add_argument("--cache-megabytes", type=int, default=2048, help="memory for prompts of other conversations")
    parser.add_argument("--alias", default="", help="the model's name in what the server says of itself")
    parser.add_argument("--embeddings", action="store_true", help="serve vectors of texts in place of answers")
    return parser


def _parameters(given: argparse.Namespace, api_key: str) -> "CommonParams":
    from xllamacpp import CommonParams, ggml_type

    parameters = CommonParams()
    parameters.model.path = given.model
    if given.alias:
        parameters.model_alias = {given.alias}
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    parameters.api_keys = [api_key]
    parameters.n_ctx = given.context_tokens
    parameters.n_parallel = 1
    if given.threads:
        parameters.cpuparams.n_threads = given.threads
        parameters.cpuparams_batch.n_threads = given.threads
    if given.gpu_layers is not None:
        parameters.n_gpu_layers = given.gpu_layers
    parameters.cache_type_k = parameters.cache_type_v = getattr(ggml_type, f"GGML_TYPE_{given.cache_type.upper()}")
    parameters.cache_ram_mib = given.cache_megabytes
    if given.embeddings:
        parameters.embedding = True
        # A text is embedded in one batch.
        parameters.n_batch = parameters.n_ubatch = given.context_tokens
    else:
        # The server says after each batch how much of a prompt it has read; it computes no more at once anyway.
        parameters.n_batch = parameters.n_ubatch
    parameters.endpoint_slots = True
    # No web page may read even the routes that need no key.
    parameters.cors_origins = "http://127.0.0.1"
    parameters.offline = True
    parameters.ui = False
    return parameters


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
