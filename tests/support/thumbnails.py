"""A network that learns in a moment, and rows for it to learn from: what the tests of training train."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from counterfoil.benchmarks.records import Caption, Image, PixelSource
from counterfoil.benchmarks.training_rows import TrainingSet
from counterfoil.models.networks import Backbone, Encoded, Network

WORDS = ("red", "green", "blue", "light", "dark", "wide", "tall", "small")
SIZE = 8


@dataclass(frozen=True)
class Shrunk:
    def __call__(self, picture):
        return np.asarray(picture.resize((SIZE, SIZE)))


class Thumb(Network):
    """A linear map of pixels, the mean of word vectors, and dropout, which draws at random in each step."""

    def __init__(self, width, dropout):
        super().__init__()
        self.image = nn.Sequential(
            nn.Flatten(), nn.Linear(3 * SIZE * SIZE, 32), nn.ReLU(), nn.Dropout(dropout), nn.Linear(32, width)
        )
        self.word = nn.Embedding(len(WORDS) + 1, width, padding_idx=0)
        self.text = nn.Linear(width, width)
        self.logit_scale = nn.Parameter(torch.tensor(2.0))

    def encode_images(self, pixels):
        return Encoded(self.image(pixels))

    def encode_texts(self, tokens):
        return Encoded(self.text(self.word(tokens).sum(dim=1)))


def pixels(pictures):
    return torch.from_numpy(np.stack(list(pictures))).permute(0, 3, 1, 2).float() / 255


def tokens(texts):
    known = {word: number for number, word in enumerate(WORDS, start=1)}
    # What is not known is nothing, as padding is.
    ids = [[known.get(word, 0) for word in text.split()] for text in texts]
    width = max(map(len, ids))
    return torch.tensor([row + [0] * (width - len(row)) for row in ids])


def thumb(*, seed=0, width=16, dropout=0.1):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = Thumb(width, dropout)
    card = {"kind": "thumb", "width": width, "dropout": dropout}
    return Backbone("thumb", network, Shrunk(), pixels, tokens, card)


def from_card(card, folder=None):
    return thumb(width=card["width"], dropout=card["dropout"])


def rows(n, *, seed=0, negatives=False, captions_each=1):
    """`n` rows: blotches of colour and words that say something of them."""
    rng = np.random.default_rng(seed)
    images, captions = [], []
    at = {"image": [], "caption": []}
    at |= {"negative_image": [], "negative_caption": []} if negatives else {}
    roles = (("image", "caption"), ("negative_image", "negative_caption"))[: 1 + negatives]
    for row in range(n):
        for image_role, caption_role in roles:
            if row % captions_each == 0:
                colour = rng.integers(0, 256, 3)
                picture = np.clip(colour + rng.integers(-20, 20, (12, 10, 3)), 0, 255).astype(np.uint8)
                images.append(Image(f"{image_role}-{row}", PixelSource(picture)))
            chosen = [WORDS[int(colour.argmax())], "light" if colour.sum() > 384 else "dark"]
            chosen += [WORDS[int(i)] for i in rng.integers(5, 8, rng.integers(0, 3))]
            captions.append(Caption(f"{caption_role}-{row}", " ".join(chosen)))
            at[image_role].append(len(images) - 1)
            at[caption_role].append(len(captions) - 1)
    columns = {role: np.array(positions) for role, positions in at.items()}
    return TrainingSet(f"blotches-{seed}", tuple(images), tuple(captions), columns)
