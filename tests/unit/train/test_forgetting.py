"""What is forgotten is noticed, and weights between the start and the end are what they say."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("lightning_fabric")

import thumbnails  # noqa: E402
from contracts import forms  # noqa: E402
from counterfoil.errors import InputError, ModelError  # noqa: E402
from counterfoil.train.loop import fit  # noqa: E402
from counterfoil.train.recipes import Coco  # noqa: E402
from counterfoil.train.saving import Monitors  # noqa: E402
from counterfoil.train.validation import ForgettingGuard, Watch, interpolate, sweep  # noqa: E402

pytestmark = pytest.mark.models


def test_a_guard_warns_once_each_time_that_too_much_is_lost() -> None:
    values = iter([0.80, 0.79, 0.70, 0.69, 0.81, 0.5])
    said: list[str] = []
    recipe = Coco(batch_size=8, epochs=5, lr=1e-3, warmup=1, select="last")
    found = fit(
        thumbnails.thumb(),
        recipe,
        thumbnails.rows(16),
        monitors=Monitors(guard=ForgettingGuard(lambda backbone: next(values), margin=0.05, name="old")),
        device="cpu",
        note=said.append,
    )
    assert [(entry["step"], entry["old"]) for entry in found.history if "old" in entry] == [
        (0, 0.80),
        (2, 0.79),
        (4, 0.70),
        (6, 0.69),
        (8, 0.81),
        (10, 0.5),
    ]
    assert [line.partition(",")[0] for line in said] == [
        "step 4: old fell from 0.800 to 0.700",
        "step 10: old fell from 0.800 to 0.500",
    ]


@pytest.mark.parametrize(
    ("value", "lost"), [(0.75, False), (0.7499, True), (0.9, False), (float("nan"), True)]
)
def test_the_margin_itself_may_be_lost(value: float, lost: bool) -> None:
    said: list[str] = []
    Watch(ForgettingGuard(lambda backbone: 0.0, margin=0.05), 0.8).see(value, 3, said.append)
    assert bool(said) == lost


def test_a_benchmark_is_answered_by_the_network() -> None:
    data = thumbnails.rows(40)
    benchmark = forms.quads_of(data.images, data.captions)
    backbone = thumbnails.thumb()
    backbone.network.train()
    found = ForgettingGuard(benchmark).measure(backbone)
    assert backbone.network.training
    backbone.network.eval()
    with torch.no_grad():
        pictures = thumbnails.pixels([thumbnails.Shrunk()(image.decode()) for image in data.images])
        left = backbone.network.encode_images(pictures).points
        texts = [caption.text or "" for caption in data.captions]
        right = backbone.network.encode_texts(thumbnails.tokens(texts)).points
    unit = torch.nn.functional.normalize
    scores = (unit(right, dim=1) @ unit(left, dim=1).T).numpy()
    right_ones = 0
    for a, b in benchmark.questions.images:
        i2t = scores[a, a] > scores[b, a] and scores[b, b] > scores[a, b]
        t2i = scores[a, a] > scores[a, b] and scores[b, b] > scores[b, a]
        right_ones += int(i2t and t2i)
    assert found == right_ones / 20


def states(seed: int = 0) -> tuple[dict, dict]:
    return tuple(dict(thumbnails.thumb(seed=seed + i).network.state_dict()) for i in range(2))


def test_mixtures_are_element_by_element_and_exact_at_the_ends() -> None:
    start, tuned = states()
    for alpha in (0.0, 0.3, 0.5, 1.0):
        mixed = interpolate(start, tuned, alpha)
        for name in start:
            expected = (1 - alpha) * start[name].double() + alpha * tuned[name].double()
            assert torch.allclose(mixed[name].double(), expected, atol=1e-7)
    assert all(torch.equal(interpolate(start, tuned, 0)[name], start[name]) for name in start)
    assert all(torch.equal(interpolate(start, tuned, 1)[name], tuned[name]) for name in start)


def test_a_mixture_shares_no_memory_and_keeps_counters_whole() -> None:
    start, tuned = {"n": torch.tensor(3), "w": torch.zeros(2)}, {"n": torch.tensor(8), "w": torch.ones(2)}
    assert [int(interpolate(start, tuned, alpha)["n"]) for alpha in (0, 0.4, 0.5, 1)] == [3, 3, 8, 8]
    for alpha in (0, 0.5, 1):
        interpolate(start, tuned, alpha)["w"].fill_(7)
    assert start["w"].tolist() == [0, 0]
    assert tuned["w"].tolist() == [1, 1]


def test_what_does_not_mix_is_said() -> None:
    start, tuned = states()
    with pytest.raises(InputError, match=r"alpha 1\.5; allowed: 0 \(start\) to 1 \(tuned\)"):
        interpolate(start, tuned, 1.5)
    other = dict(thumbnails.thumb(width=8).network.state_dict())
    with pytest.raises(ModelError, match="two different networks do not mix"):
        interpolate(start, other, 0.5)


def test_a_sweep_measures_each_mixture_and_leaves_the_network_as_it_was() -> None:
    start, tuned = states(seed=5)
    backbone = thumbnails.thumb()
    before = {name: tensor.clone() for name, tensor in backbone.network.state_dict().items()}

    def first(backbone) -> float:
        return float(backbone.network.state_dict()["text.bias"][0])

    def second(backbone) -> float:
        return -first(backbone)

    found = sweep(backbone, start, tuned, task=first, held_out=second, alphas=(0, 0.25, 1))
    ends = float(start["text.bias"][0]), float(tuned["text.bias"][0])
    expected = [ends[0] + alpha * (ends[1] - ends[0]) for alpha in (0, 0.25, 1)]
    assert [mixture.alpha for mixture in found] == [0, 0.25, 1]
    assert [mixture.task for mixture in found] == pytest.approx(expected, abs=1e-6)
    assert [mixture.held_out for mixture in found] == pytest.approx([-value for value in expected], abs=1e-6)

    def fails(backbone) -> float:
        raise RuntimeError

    with pytest.raises(RuntimeError):
        sweep(backbone, start, tuned, task=fails, held_out=second)
    assert all(torch.equal(backbone.network.state_dict()[name], before[name]) for name in before)


def test_a_sweep_takes_the_state_of_the_network_itself() -> None:
    start, _ = states(seed=5)
    backbone = thumbnails.thumb()
    own = backbone.network.state_dict()
    ends = float(start["text.bias"][0]), float(own["text.bias"][0])

    def first(backbone) -> float:
        return float(backbone.network.state_dict()["text.bias"][0])

    found = sweep(backbone, start, own, task=first, held_out=first, alphas=(0, 0.5, 1))
    assert [mixture.task for mixture in found] == pytest.approx([ends[0], sum(ends) / 2, ends[1]], abs=1e-6)
