"""Tiny models of transformers' less common families, and a tokenizer of a few words."""

import json

from counterfoil.store import write_bytes, write_json


def _family(name):
    """A tiny model of a family, and its image processor."""
    import transformers

    layers = {"num_hidden_layers": 2, "num_attention_heads": 2, "hidden_size": 32, "intermediate_size": 64}
    text = {**layers, "vocab_size": 40, "bos_token_id": 1, "eos_token_id": 2}
    if name == "siglip2":
        config = transformers.Siglip2Config(
            text_config={**text, "max_position_embeddings": 64, "projection_size": 32},
            vision_config={**layers, "num_patches": 16, "patch_size": 8},
        )
        processor = transformers.Siglip2ImageProcessor(patch_size=8, max_num_patches=16)
        return transformers.Siglip2Model(config), processor
    if name == "altclip":
        # Of 66 positions two are padding's, as in RoBERTa.
        config = transformers.AltCLIPConfig(
            text_config={**text, "max_position_embeddings": 66, "project_dim": 24, "pad_token_id": 0},
            vision_config={**layers, "image_size": 32, "patch_size": 8, "projection_dim": 24},
            projection_dim=24,
        )
        processor = transformers.CLIPImageProcessor(size={"shortest_edge": 32}, crop_size=32)
        return transformers.AltCLIPModel(config), processor
    vision = {
        "image_size": 32, "width_coefficient": 0.1, "depth_coefficient": 0.1, "in_channels": [8, 8],
        "out_channels": [8, 16], "kernel_sizes": [3, 3], "strides": [1, 2], "num_block_repeats": [1, 1],
        "expand_ratios": [1, 2], "depthwise_padding": [],
    }  # fmt: skip
    config = transformers.AlignConfig(
        text_config={**text, "max_position_embeddings": 80}, vision_config=vision, projection_dim=8
    )
    processor = transformers.EfficientNetImageProcessor(size={"height": 32, "width": 32})
    return transformers.AlignModel(config), processor


def save_family(name, folder):
    """A tiny model of a family in a folder, with its image processor and a tokenizer of words."""
    import torch

    torch.manual_seed(0)
    for part in _family(name):
        part.save_pretrained(folder)
    save_words(folder)
    return folder


def save_words(folder):
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    words = ["<pad>", "<s>", "</s>", "<unk>", "a", "red", "cat", "dog", "on", "the", "mat", "photo", "of"]
    backend = Tokenizer(models.WordLevel({word: n for n, word in enumerate(words)}, unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    backend.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 1), ("</s>", 2)]
    )
    marks = {"pad_token": "<pad>", "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    PreTrainedTokenizerFast(tokenizer_object=backend, model_max_length=512, **marks).save_pretrained(folder)


def save_clip(folder, many=48894):
    """A tiny CLIP of transformers with CLIP's real vocabulary or some of it, and its image processor."""
    import transformers

    save_clip_tokenizer(folder, many)
    layers = {"num_hidden_layers": 2, "num_attention_heads": 2, "hidden_size": 32, "intermediate_size": 64}
    config = transformers.CLIPConfig(
        text_config={
            **layers,
            "vocab_size": many + 514,
            "max_position_embeddings": 77,
            "eos_token_id": many + 513,
            "bos_token_id": many + 512,
        },
        vision_config={**layers, "image_size": 32, "patch_size": 8},
        projection_dim=24,
    )
    save_model(transformers.CLIPModel, config, folder)
    transformers.CLIPImageProcessor(size={"shortest_edge": 32}, crop_size=32).save_pretrained(folder)


def save_model(kind, config, folder):
    """A model of random weights, large enough that every part of it shows in the answers."""
    import torch

    torch.manual_seed(11)
    model = kind(config)
    for parameter in model.parameters():
        if parameter.ndim:
            parameter.data += 0.2 * torch.randn_like(parameter)
    model.save_pretrained(folder)


def save_clip_tokenizer(folder, many=48894):
    """CLIP's vocabulary, which open_clip carries, or `many` of its merges, in the files of transformers."""
    import gzip

    from open_clip.tokenizer import bytes_to_unicode, default_bpe

    with gzip.open(default_bpe()) as file:
        merges = file.read().decode("utf-8").split("\n")[1 : many + 1]
    letters = list(bytes_to_unicode().values())
    pieces = letters + [letter + "</w>" for letter in letters] + ["".join(merge.split()) for merge in merges]
    pieces += ["<|startoftext|>", "<|endoftext|>"]
    folder.mkdir(exist_ok=True)
    (folder / "vocab.json").write_text(json.dumps({piece: number for number, piece in enumerate(pieces)}))
    (folder / "merges.txt").write_text("#version: 0.2\n" + "\n".join(merges) + "\n")
    (folder / "tokenizer_config.json").write_text(
        json.dumps(
            {
                "tokenizer_class": "CLIPTokenizer",
                "model_max_length": 77,
                "bos_token": "<|startoftext|>",
                "eos_token": "<|endoftext|>",
                "unk_token": "<|endoftext|>",
                "pad_token": "<|endoftext|>",
            }
        )
    )


def save_gpt2(folder, many=2000):
    """GPT-2 with `many` of CLIP's merges."""
    import transformers

    save_clip_tokenizer(folder, many)
    config = transformers.GPT2Config(vocab_size=many + 514, n_positions=40, n_embd=24, n_layer=2, n_head=2)
    save_model(transformers.GPT2LMHeadModel, config, folder)


def save_text_models(place, many=2000):
    """GPT-2, BERT and two classifiers (of two and of three classes) with the first of CLIP's words, and T5.

    The T5 encoder is laid out as Vera is: its table of embeddings holds a head and a temperature.
    """
    import torch
    import transformers

    small = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    save_gpt2(place / "gpt2", many)
    for name in ("bert", "cola", "three"):
        # Reading all of them takes a second, and each test reads several models.
        save_clip_tokenizer(place / name, many)
    bert = {"vocab_size": many + 515, "max_position_embeddings": 40, **small}
    tokenizer = transformers.AutoTokenizer.from_pretrained(place / "bert")
    tokenizer.add_special_tokens({"mask_token": "<mask>"})
    tokenizer.save_pretrained(place / "bert")
    save_model(transformers.BertForMaskedLM, transformers.BertConfig(**bert), place / "bert")
    labels = {0: "unacceptable", 1: "acceptable"}
    named = {"id2label": labels, "label2id": {name: number for number, name in labels.items()}}
    kind = transformers.BertForSequenceClassification
    save_model(kind, transformers.BertConfig(**bert, **named), place / "cola")
    save_model(kind, transformers.BertConfig(**bert, num_labels=3), place / "three")
    (place / "t5").mkdir()
    save_words(place / "t5")
    t5 = transformers.T5Config(vocab_size=32128, d_model=16, d_kv=8, d_ff=32, num_layers=2, num_heads=2)
    torch.manual_seed(3)
    model = transformers.T5EncoderModel(t5)
    with torch.no_grad():
        model.shared.weight[32097, 0] = 1.7
    model.save_pretrained(place / "t5")


#: CLIP's architecture at the size of a thumbnail: 1.9 million parameters, most of them the vocabulary.
THUMBNAIL = {
    "embed_dim": 64,
    "vision_cfg": {"image_size": 96, "patch_size": 16, "width": 64, "head_width": 32, "layers": 2},
    "text_cfg": {"context_length": 77, "vocab_size": 49408, "width": 32, "heads": 2, "layers": 2},
}


def write_random_checkpoint(folder, *, seed=0):
    """Write a small CLIP of open_clip with random weights; returns its spec, `open-clip:local-dir:FOLDER`."""
    import torch
    from open_clip.model import CLIP
    from safetensors.torch import save

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = CLIP(**THUMBNAIL)
    state = {name: tensor.contiguous() for name, tensor in model.state_dict().items()}
    config = {"model_cfg": THUMBNAIL, "preprocess_cfg": {"size": [96, 96], "mode": "RGB"}}
    write_bytes(folder / "open_clip_model.safetensors", save(state, metadata={"format": "pt"}))
    write_json(folder / "open_clip_config.json", config)
    return f"open-clip:local-dir:{folder}"
