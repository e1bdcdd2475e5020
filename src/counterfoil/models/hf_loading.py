"""Models, tokenizers and image processors of the package transformers, from a folder or from the hub.

Code that comes with a checkpoint is never run.
"""

import logging
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from counterfoil.errors import InputError, MissingExtraError, ModelError
from counterfoil.inputs.files import parse_json, read_text
from counterfoil.inputs.limits import check_network
from counterfoil.models.base import ScorerSettings, digest_tensors
from counterfoil.models.runtime import CANNOT_BE_HAD, NO_NETWORK, causes
from counterfoil.store import digest_value

#: The caption that a model is tried with when it is loaded.
SAMPLE = "a photo of a cat"
#: Text lengths that a model's processor prescribes, where its tokenizer and configuration allow more.
PRESCRIBED = {"align": 64, "flava": 77}
#: Parameters that no embedding depends on; a text encoder's pooler is one, since its tokens are used.
_UNUSED = re.compile(r"(.*\.)?(logit_scale|logit_bias|temperature|position_ids)|pooler\..*")


def library_of() -> Any:
    """The package transformers; raises `MissingExtraError` where it is not installed."""
    try:
        import transformers
    except ModuleNotFoundError:
        raise MissingExtraError("transformers", "models") from None
    return transformers


def configuration_of(argument: str, where: str) -> tuple[Any, Any]:
    """The package transformers, and the configuration of the model in a folder or of that name on the hub.

    Raises `MissingExtraError` without the package, and `ModelError` where there is no such model.
    """
    library = library_of()
    check_place(argument, where)
    with quiet(library):
        return library, fetched(library.AutoConfig, argument, where, "configuration")


def check_place(argument: str, where: str) -> None:
    """Raise `ModelError` where `argument` is neither a folder of a model nor like a name on the hub."""
    path = Path(argument)
    if path.is_dir():
        if not (path / "config.json").is_file():
            raise ModelError(
                "the folder holds no model of transformers (no config.json)",
                where=where,
                given=", ".join(sorted(file.name for file in path.iterdir())[:8]) or "an empty folder",
                hint="a checkpoint of open_clip loads as open-clip:ARCH/FILE",
            )
        config = path / "config.json"
        # transformers takes NaN for a setting, and its model gives numbers all the same.
        check_network(parse_json(read_text(config), where=config, finite=True), where=config)
        for file in (path / name for name in ("preprocessor_config.json", "processor_config.json")):
            if file.is_file():
                parse_json(read_text(file), where=file, finite=True)
    elif path.exists():
        raise ModelError(
            "is a file, not a folder", where=where, hint="name the folder that holds config.json"
        )
    elif not re.fullmatch(r"[\w.-]+(/[\w.-]+)?", argument) or argument.startswith("."):
        raise ModelError("no such folder", where=where, hint="check the path, or give a hub name OWNER/MODEL")


def weights_of(
    library: Any, argument: str, where: str, *, kind: Any = None, unused: str = ""
) -> tuple[Any, str]:
    """The model with all weights that an answer depends on, and the revision of the hub it came from.

    `kind` is its class, by default the one that its configuration names; parameters that match `unused` may
    be missing.
    """
    try:
        model, report = (kind or library.AutoModel).from_pretrained(
            argument,
            trust_remote_code=False,
            weights_only=True,
            output_loading_info=True,
            local_files_only=Path(argument).is_dir(),
        )
    except Exception as error:
        raise _explained(error, where, "model") from None
    missing = [
        name
        for name in sorted(report["missing_keys"])
        if not (_UNUSED.fullmatch(name) or re.fullmatch(unused, name))
    ]
    wrong = sorted(str(key) for key in report.get("mismatched_keys", ()))
    if missing or wrong:
        raise ModelError(
            "the checkpoint does not fill the model, and the rest would be random",
            where=where,
            given=f"{len(missing)} missing, {len(wrong)} of another shape; first {(missing + wrong)[0]}",
        )
    return model, str(getattr(model.config, "_commit_hash", None) or "")


def fetched(kind: Any, argument: str, where: str, what: str) -> Any:
    """The result of `kind.from_pretrained` for a folder or name; raises `ModelError`, which names `what`."""
    try:
        return kind.from_pretrained(
            argument, trust_remote_code=False, local_files_only=Path(argument).is_dir()
        )
    except Exception as error:
        raise _explained(error, where, what) from None


def _explained(error: Exception, where: str, what: str) -> ModelError:
    """One line for an error of transformers in fetching or reading `what`."""
    text = causes(error)
    if NO_NETWORK.search(text) and not Path(where.partition(":")[2]).is_dir():
        return ModelError(
            f"its {what} {CANNOT_BE_HAD}",
            where=where,
            hint="load it once with a network, or give a local folder",
        )
    if "trust_remote_code" in text:
        return ModelError(f"its {what} brings code of its own, which is not run", where=where)
    if "weights_only" in text or "Weights only" in text:
        return ModelError(
            "restoring its weights means running code from them, and that is not done",
            where=where,
            hint="save them as safetensors",
        )
    return ModelError(f"its {what} cannot be loaded: {' '.join(str(error).split())[:240]}", where=where)


@contextmanager
def quiet(library: Any) -> Iterator[None]:
    """Without transformers' log, warnings and progress bars; their causes are checked here."""
    disabled, bars = logging.root.manager.disable, library.utils.logging.is_progress_bar_enabled()
    logging.disable(logging.ERROR)
    library.utils.logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(disabled)
        if bars:
            library.utils.logging.enable_progress_bar()


def can_cut(model: Any) -> bool:
    """Whether a caption's features depend on nothing after its end mark: CLIP's causal text tower alone."""
    tower = getattr(model, "text_model", None)
    return model.config.model_type == "clip" and type(tower).__name__ in (
        "CLIPTextModel",
        "CLIPTextTransformer",
    )


def length_of(config: Any, tokenizer: Any) -> int:
    """The number of tokens of a caption that the model reads."""
    text = getattr(config, "text_config", config)
    positions = int(getattr(text, "max_position_embeddings", 77))
    # RoBERTa's positions start after its padding mark, so two of them are never used.
    if "roberta" in str(text.model_type) or config.model_type in ("altclip", "bridgetower"):
        positions -= 2
    return min(PRESCRIBED.get(config.model_type, positions), positions, int(tokenizer.model_max_length))


def length_within(settings: ScorerSettings, most: int, usual: int | None = None) -> int:
    """The setting `length`, at most what the model reads; where none is given `usual`, or that.

    Raises `InputError` for lengths that leave no room for words between the marks, and for longer ones.
    """
    length = settings.count("length", most if usual is None else min(usual, most))
    if not 2 < length <= most:
        raise InputError(
            "the model cannot read captions of this length",
            where=settings.where,
            given=length,
            allowed=f"3 to {most} tokens",
        )
    return length


def check_words(tokenizer: Any, where: str) -> None:
    """Raise `ModelError` where a tokenizer knows none of a caption's words.

    transformers makes an empty one where a tokenizer's files are missing.
    """
    if not set(tokenizer(SAMPLE)["input_ids"]) - set(tokenizer.all_special_ids):
        raise ModelError(
            "its tokenizer knows no words",
            where=where,
            given=f"a vocabulary of {len(tokenizer)}",
            hint="are the tokenizer's files missing?",
        )


def digest_without_pooler(model: Any) -> str:
    """Hex digits of the weights, but for a pooler: no token depends on it, and some checkpoints have none."""
    state = {key: value for key, value in model.state_dict().items() if not key.startswith("pooler.")}
    return digest_tensors(state)


def tokenizer_digest(tokenizer: Any) -> str:
    """Hex digits that identify a tokenizer's behaviour."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is not None:
        return digest_value(backend.to_str())
    return digest_value([type(tokenizer).__name__, sorted(tokenizer.get_vocab().items())])
