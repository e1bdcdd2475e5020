"""Texts that a causal language model of transformers writes after prompts.

The model is read by the loader of `lm:NAME_OR_FOLDER`. A prompt is a text, or the turns of a conversation,
the user's first. With a chat template a tokenizer gets them as messages; without one it gets them as they
are, with a line between them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from counterfoil.errors import InputError, ModelError
from counterfoil.scorers.base import DEFAULT, Identity, Options
from counterfoil.scorers.text_models import TextModel, load_lm


@dataclass(frozen=True, eq=False)
class TextGenerator:
    """A model that continues prompts; `identity` names it with its weights."""

    model: TextModel

    @property
    def identity(self) -> Identity:
        """That of the model, as of the scorer of the same name."""
        return self.model.identity

    def write(
        self,
        prompts: Sequence[str | Sequence[str]],
        *,
        most: int,
        temperature: float = 0.0,
        seed: int = 0,
        head: str = "",
    ) -> list[str]:
        """What the model writes after each prompt, up to its end mark or `most` tokens, without marks.

        With `head` every answer has begun with that text, and what follows it is returned.

        At temperature 0 the likeliest token is taken each time, and above it one is drawn; the same prompts
        in one call with the same seed then give the same texts. All prompts go through the model together,
        padded on the left. Raises `InputError` where a prompt leaves no room for an answer.
        """
        if not prompts:
            return []
        tokenizer = self.model.tokenizer
        rows = [self._ids(prompt, head) for prompt in prompts]
        longest = max(map(len, rows))
        limit = getattr(self.model.network.config, "max_position_embeddings", None) or longest + most
        if longest >= limit:
            raise InputError(
                "a prompt is longer than the model reads",
                where=self.model.identity.name,
                given=f"{longest:,} tokens",
                allowed=f"fewer than {limit:,}",
            )
        filler = next(
            mark for mark in (tokenizer.pad_token_id, tokenizer.eos_token_id, 0) if mark is not None
        )
        ids = torch.tensor([[filler] * (longest - len(row)) + row for row in rows], device=self.model.device)
        mask = torch.tensor(
            [[0] * (longest - len(row)) + [1] * len(row) for row in rows], device=self.model.device
        )
        drawn: dict[str, Any] = {"do_sample": False}
        if temperature > 0:
            drawn = {"do_sample": True, "temperature": temperature, "top_k": 0, "top_p": 1.0}
        devices = [self.model.device] if self.model.device.type == "cuda" else []
        with torch.inference_mode(), torch.random.fork_rng(devices):
            torch.manual_seed(seed)
            output = self.model.network.generate(
                input_ids=ids,
                attention_mask=mask,
                max_new_tokens=min(most, limit - longest),
                pad_token_id=filler,
                **drawn,
            )
        texts: list[str] = tokenizer.batch_decode(output[:, longest:], skip_special_tokens=True)
        return [text.strip() for text in texts]

    def _ids(self, prompt: str | Sequence[str], head: str = "") -> list[int]:
        """The ids of a prompt, within the chat template where there is one, and of how the answer begins."""
        tokenizer = self.model.tokenizer
        messages = [prompt] if isinstance(prompt, str) else list(prompt)
        if getattr(tokenizer, "chat_template", None):
            text = tokenizer.apply_chat_template(
                [
                    {"role": "assistant" if at % 2 else "user", "content": message}
                    for at, message in enumerate(messages)
                ],
                tokenize=False,
                add_generation_prompt=True,
            )
            ids: list[int] = tokenizer(text + head, add_special_tokens=False)["input_ids"]
            return ids
        text = "\n\n".join(messages) + (f"\n\n{head}" if head else "")
        words: list[int] = tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
        return [*self.model.start, *words]


def load_generator(argument: str, options: Options = DEFAULT) -> TextGenerator:
    """The causal model in a local folder, or of that name on the hub.

    Raises what the loader of `lm:` raises, and `ModelError` for a model that fills gaps and writes nothing.
    """
    model = load_lm(argument, options)
    if not model.start or not model.network.can_generate():
        raise ModelError(
            "the model writes no text",
            where=f"lm:{argument}",
            given=type(model.network).__name__,
            allowed="causal language models, such as GPT-2, Llama, Qwen",
        )
    return TextGenerator(model)
