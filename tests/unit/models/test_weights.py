"""What a model holds decides what the cache takes for its own."""

from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

from counterfoil.engine.session import Session, run
from counterfoil.errors import InputError
from counterfoil.models.base import Identity, check_kept, identity_of
from counterfoil.world import quads


class Network(nn.Module):
    """Numbers of a picture weighed by one layer."""

    def __init__(self, seed, activation=None):
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.layer = nn.Linear(3, 1)
        self.activation = activation or nn.GELU()
        self.register_buffer("shift", torch.zeros(1), persistent=False)
        with torch.no_grad():
            self.layer.weight.copy_(torch.randn(1, 3, generator=generator))
            self.layer.bias.zero_()

    def forward(self, values):
        return self.activation(self.layer(values)) + self.shift


@dataclass(eq=False)
class Own:
    """A model as a user would write it: a name, a network, a method."""

    network: nn.Module
    identity: Identity = field(default_factory=lambda: Identity("own"))

    def score(self, images, captions):
        means = np.stack(
            [np.asarray(image.decode(), dtype=np.float32).mean((0, 1)) / 255 for image in images]
        )
        lengths = np.asarray([len(caption.text) for caption in captions])
        with torch.no_grad():
            return self.network(torch.from_numpy(means))[:, 0].double().numpy() * lengths


def test_two_networks_of_one_name_never_share_a_cache(tmp_path):
    benchmark = quads(14, size=32)
    first, second = Own(Network(0)), Own(Network(1))
    assert first.identity == second.identity
    kept = run(benchmark, first, session=Session(tmp_path)).values
    other = run(benchmark, second, session=Session(tmp_path)).values
    np.testing.assert_array_equal(other, run(benchmark, second).values)
    assert (kept != other).any()
    # The same weights in another object find what is kept.
    asked = Own(Network(0))
    asked.network.forward = None
    np.testing.assert_array_equal(run(benchmark, asked, session=Session(tmp_path)).values, kept)


def test_a_network_that_is_trained_on_is_another():
    own = Own(Network(0))
    before = identity_of(own)
    with torch.no_grad():
        own.network.layer.bias.add_(1)
    assert identity_of(own).weights != before.weights
    own.network.layer.bias.data.zero_()
    assert identity_of(own) == before
    own.network.shift.add_(1)
    assert identity_of(own) != before
    # What no tensor tells counts.
    assert identity_of(Own(Network(0, nn.GELU()))) != identity_of(Own(Network(0, nn.ReLU())))
    # Named weights are believed.
    named = replace(Identity("own"), weights="abc")
    assert identity_of(Own(Network(0), named)) == named


class Slotted:
    __slots__ = ("network",)

    def __init__(self, network):
        self.network = network


def around(network):
    def score(images, captions):
        return network(images)

    return score


@pytest.mark.parametrize(
    "hold",
    [
        lambda network: {"models": [network]},
        lambda network: network.forward,
        lambda network: partial(max, network),
        around,
        lambda network: Own(network),
        Slotted,
        lambda network: network.state_dict(),
        lambda network: (np.asarray(network.layer.weight.detach()),),
    ],
)
def test_weights_are_found_wherever_a_model_holds_them(hold):
    one, same, other = (identity_of(Own(hold(Network(seed)))) for seed in (0, 0, 1))
    assert one == same
    assert one.weights
    assert one.weights != other.weights


@dataclass(frozen=True)
class Code:
    identity: Identity

    def score(self, images, captions):
        return np.asarray([len(caption.text) for caption in captions], dtype=np.float64)


def test_a_name_alone_is_not_kept(tmp_path):
    benchmark = quads(7, size=32)
    with pytest.raises(InputError, match=r"own: .*neither weights nor a revision.*revision=\"1\""):
        run(benchmark, Code(Identity("own", prompt="a photo of {}")), session=Session(tmp_path))
    assert not list(tmp_path.rglob("*.npz"))
    # Without a cache there is nothing to mix up, and with a revision each has its own.
    run(benchmark, Code(Identity("own")))
    run(benchmark, Code(Identity("own", revision="1")), session=Session(tmp_path))
    assert list(tmp_path.rglob("*.npz"))
    check_kept(Identity("own", weights="abc"))
