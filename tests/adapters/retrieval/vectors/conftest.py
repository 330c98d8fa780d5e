"""A server of embeddings for these tests."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.llama_fixtures import tiny_model_path

__all__ = ["tiny_model_path"]

_SERVE = """
import sys, signal
from xllamacpp import CommonParams, Server
parameters = CommonParams()
parameters.model.path = sys.argv[1]
parameters.port = 0
parameters.n_parallel = 1
parameters.cpuparams.n_threads = 1
parameters.embedding = sys.argv[2] == "on"
parameters.ui = False
server = Server(parameters)
print(server.listening_address, flush=True)
signal.pause()
"""
