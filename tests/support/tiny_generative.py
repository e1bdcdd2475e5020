"""Models of random weights that write text about a picture, each made by its real classes and saved with its
tokenizer, image processor and chat template."""

from functools import partial

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

#: What the byte-level tokenizer's merges are learned from: words of captions and of the questions about them.
TEXT = """
Does this figure show "a red cat on the mat"? Please answer Yes or No. Yes No yes no
Describe the image in one sentence. caption en a photo of a dog and a cat on the grass two dogs
the red ball behind the blue house a man a woman a child with a white horse system user assistant
You are a helpful assistant. User: Assistant: User Assistant person people chair table left right of
"""
CHATML = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n"
    "{% for part in message.content %}{% if part.type == 'image' %}IMAGE"
    "{% else %}{{ part.text }}{% endif %}{% endfor %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
#: Of Idefics3 and SmolVLM: no line between the role and what is said.
IDEFICS = (
    "<|im_start|>{% for message in messages %}{{ message.role | capitalize }}"
    "{% if message.content[0].type == 'image' %}:{% else %}: {% endif %}"
    "{% for part in message.content %}{% if part.type == 'image' %}<image>"
    "{% else %}{{ part.text }}{% endif %}{% endfor %}<end_of_utterance>\n{% endfor %}"
    "{% if add_generation_prompt %}Assistant:{% endif %}"
)
#: Of Gemma 3.
GEMMA = (
    "{{ bos_token }}{% for message in messages %}"
    "<start_of_turn>{{ 'model' if message.role == 'assistant' else message.role }}\n"
    "{% for part in message.content %}{% if part.type == 'image' %}<start_of_image>"
    "{% else %}{{ part.text | trim }}{% endif %}{% endfor %}<end_of_turn>\n{% endfor %}"
    "{% if add_generation_prompt %}<start_of_turn>model\n{% endif %}"
)
#: Sizes of a tiny model; `side` is that of its square pictures, `patch` of their patches.
TINY = {
    "width": 32, "layers": 2, "heads": 2, "side": 32, "patch": 8, "vision_width": 32, "vision_layers": 2,
}  # fmt: skip


def save(name, folder, *, seed=11, **sizes):
    """The folder with a model of the family `name` (a key of `FAMILIES`), of the sizes of `TINY` or given."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model, processor = FAMILIES[name]({**TINY, **sizes}, folder)
        for parameter in model.parameters():
            # Large enough that every part of the model shows in the answers.
            if parameter.ndim > 1:
                parameter.data += 0.3 / parameter.shape[-1] ** 0.5 * torch.randn_like(parameter)
        model.save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder


def words(*added, eos, pad, bos=None):
    """A byte-level tokenizer with a few hundred merges; `added` are its control tokens."""
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=700, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), special_tokens=[],
        show_progress=False,
    )  # fmt: skip
    backend.train_from_iterator([TEXT] * 4, trainer)
    marks = {"eos_token": eos, "pad_token": pad, **({"bos_token": bos} if bos else {})}
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=backend, model_max_length=2048, **marks)
    tokenizer.add_special_tokens({"additional_special_tokens": list(added)})
    return tokenizer


def _text(sizes, tokenizer, **more):
    return {
        "vocab_size": len(tokenizer), "hidden_size": sizes["width"], "intermediate_size": 2 * sizes["width"],
        "num_hidden_layers": sizes["layers"], "num_attention_heads": sizes["heads"],
        "num_key_value_heads": sizes["heads"], "max_position_embeddings": 2048,
        "pad_token_id": tokenizer.pad_token_id, "eos_token_id": tokenizer.eos_token_id,
        "bos_token_id": tokenizer.bos_token_id, **more,
    }  # fmt: skip


def _vision(sizes, **more):
    return {
        "hidden_size": sizes["vision_width"], "intermediate_size": 2 * sizes["vision_width"],
        "num_hidden_layers": sizes["vision_layers"], "num_attention_heads": sizes["heads"],
        "image_size": sizes["side"], "patch_size": sizes["patch"], **more,
    }  # fmt: skip


def _qwen(sizes, folder, *, third):
    marks = (
        "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>",
    )  # fmt: skip
    tokenizer = words(*marks, eos="<|im_end|>", pad="<|endoftext|>")
    named_as = {"image": "image_pad", "video": "video_pad"}
    ids = {
        f"{key}_token_id": tokenizer.convert_tokens_to_ids(f"<|{named_as.get(key, key)}|>")
        for key in ("image", "video", "vision_start", "vision_end")
    }
    half = sizes["width"] // sizes["heads"] // 2
    section = [half - 2 * (half // 3), half // 3, half // 3]
    pixels = sizes["side"] ** 2
    merging = {"patch_size": sizes["patch"], "temporal_patch_size": 2}
    template = CHATML.replace("IMAGE", "<|vision_start|><|image_pad|><|vision_end|>")
    images = transformers.Qwen2VLImageProcessor(
        min_pixels=pixels // 4, max_pixels=pixels, merge_size=2, **merging
    )
    vision = {"depth": sizes["vision_layers"], "num_heads": sizes["heads"], "spatial_merge_size": 2}
    vision |= merging
    text = {"rope_parameters": {"rope_type": "default", "mrope_section": section, "rope_theta": 10000.0}}
    if third:
        text["head_dim"] = sizes["width"] // sizes["heads"]
        vision |= {
            "hidden_size": sizes["vision_width"], "intermediate_size": 2 * sizes["vision_width"],
            "out_hidden_size": sizes["width"], "num_position_embeddings": 64, "deepstack_visual_indexes": [0],
        }  # fmt: skip
    else:
        vision |= {"embed_dim": sizes["vision_width"], "mlp_ratio": 2, "hidden_size": sizes["width"]}
    parts = ("Config", "ForConditionalGeneration", "Processor", "VideoProcessor")
    config, model, processor, videos = (
        getattr(transformers, f"Qwen{3 if third else 2}VL{part}") for part in parts
    )
    made = model(config(text_config=_text(sizes, tokenizer, **text), vision_config=vision, **ids))
    return made, processor(images, tokenizer, videos(**merging), chat_template=template)


def _idefics(sizes, folder):
    marks = ("<|im_start|>", "<end_of_utterance>", "<fake_token_around_image>", "<image>", "<global-img>")
    tokenizer = words(*marks, eos="<end_of_utterance>", pad="<|im_end|>", bos="<|im_start|>")
    side = sizes["side"]
    config = transformers.Idefics3Config(
        text_config=_text(sizes, tokenizer, model_type="llama"), vision_config=_vision(sizes),
        image_token_id=tokenizer.convert_tokens_to_ids("<image>"), scale_factor=2,
        pad_token_id=tokenizer.pad_token_id,
    )  # fmt: skip
    images = transformers.Idefics3ImageProcessor(
        size={"longest_edge": side}, max_image_size={"longest_edge": side}, do_image_splitting=False
    )
    processor = transformers.Idefics3Processor(
        images, tokenizer, image_seq_len=(side // sizes["patch"] // 2) ** 2, chat_template=IDEFICS
    )
    return transformers.Idefics3ForConditionalGeneration(config), processor


def _gemma(sizes, folder):
    marks = {
        "boi_token": "<start_of_image>", "eoi_token": "<end_of_image>", "image_token": "<image_soft_token>",
    }  # fmt: skip
    tokenizer = words("<start_of_turn>", "<end_of_turn>", eos="<eos>", pad="<pad>", bos="<bos>")
    # Marks that the library knows by name (`tokenizer.boi_token`).
    tokenizer.add_special_tokens({"additional_special_tokens": list(marks.values())})
    tokenizer._set_model_specific_special_tokens(special_tokens=marks)
    tokenizer.init_kwargs["extra_special_tokens"] = marks
    tokens = (sizes["side"] // sizes["patch"] // 2) ** 2
    config = transformers.Gemma3Config(
        text_config=_text(
            sizes, tokenizer, head_dim=sizes["width"] // sizes["heads"], sliding_window=16,
            layer_types=["sliding_attention", *["full_attention"] * (sizes["layers"] - 1)],
        ),
        vision_config=_vision(sizes, model_type="siglip_vision_model", vision_use_head=False),
        mm_tokens_per_image=tokens,
        boi_token_index=tokenizer.boi_token_id,
        eoi_token_index=tokenizer.eoi_token_id,
        image_token_index=tokenizer.image_token_id,
    )  # fmt: skip
    images = transformers.Gemma3ImageProcessor(size={"height": sizes["side"], "width": sizes["side"]})
    processor = transformers.Gemma3Processor(images, tokenizer, chat_template=GEMMA, image_seq_length=tokens)
    return transformers.Gemma3ForConditionalGeneration(config), processor


def _llava(sizes, folder):
    tokenizer = words(
        "<|im_start|>", "<|im_end|>", "<image>", "<video>", eos="<|im_end|>", pad="<|endoftext|>"
    )
    side = sizes["side"]
    config = transformers.LlavaOnevisionConfig(
        text_config=_text(sizes, tokenizer, model_type="qwen2"),
        vision_config=_vision(sizes, model_type="siglip_vision_model", vision_use_head=False),
        image_token_index=tokenizer.convert_tokens_to_ids("<image>"),
        video_token_index=tokenizer.convert_tokens_to_ids("<video>"),
        image_grid_pinpoints=[[side, side], [side, 2 * side], [2 * side, side]],
        vision_feature_layer=-1,
        vision_feature_select_strategy="full",
    )
    images = transformers.LlavaOnevisionImageProcessor(
        size={"height": side, "width": side}, image_grid_pinpoints=config.image_grid_pinpoints
    )
    processor = transformers.LlavaOnevisionProcessor(
        images,
        tokenizer,
        transformers.LlavaOnevisionVideoProcessor(size={"height": side, "width": side}),
        num_image_tokens=(side // sizes["patch"]) ** 2,
        vision_feature_select_strategy="full",
        chat_template=CHATML.replace("IMAGE", "<image>\n"),
    )
    return transformers.LlavaOnevisionForConditionalGeneration(config), processor


def _paligemma(sizes, folder):
    tokenizer = words("<bos>", "<eos>", "<image>", eos="<eos>", pad="<pad>", bos="<bos>")
    side = sizes["side"]
    images = transformers.SiglipImageProcessor(size={"height": side, "width": side})
    images.image_seq_length = (side // sizes["patch"]) ** 2
    # The processor adds its tokens of places to the tokenizer.
    processor = transformers.PaliGemmaProcessor(images, tokenizer)
    config = transformers.PaliGemmaConfig(
        text_config=_text(sizes, tokenizer, model_type="gemma", head_dim=sizes["width"] // sizes["heads"]),
        vision_config=_vision(
            sizes, model_type="siglip_vision_model", vision_use_head=False, projection_dim=sizes["width"]
        ),
        image_token_index=tokenizer.convert_tokens_to_ids("<image>"),
        projection_dim=sizes["width"],
    )
    return transformers.PaliGemmaForConditionalGeneration(config), processor


def _bert():
    """A tokenizer of word pieces, as BLIP and GIT have it."""
    text = sorted(
        {word.lower() for word in TEXT.replace('"', " ").replace("?", " ").replace(".", " ").split()}
    )
    letters = [chr(number) for number in range(ord("a"), ord("z") + 1)]
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *'.,?":', *letters]
    pieces += [f"##{letter}" for letter in letters] + [word for word in text if word not in letters]
    vocab = {piece: number for number, piece in enumerate(dict.fromkeys(pieces))}
    return transformers.BertTokenizer(vocab=vocab)


def _blip(sizes, folder):
    tokenizer = _bert()
    tokenizer.add_special_tokens({"bos_token": "[DEC]"})
    marks = {
        "bos_token_id": tokenizer.bos_token_id,
        "sep_token_id": tokenizer.sep_token_id,
        "eos_token_id": tokenizer.sep_token_id,
    }
    text = _text(sizes, tokenizer, max_position_embeddings=64, encoder_hidden_size=sizes["vision_width"])
    config = transformers.BlipConfig(text_config={**text, **marks}, vision_config=_vision(sizes))
    side = sizes["side"]
    images = transformers.BlipImageProcessor(size={"height": side, "width": side})
    return transformers.BlipForConditionalGeneration(config), transformers.BlipProcessor(images, tokenizer)


def _git(sizes, folder):
    tokenizer = _bert()
    text = _text(sizes, tokenizer, max_position_embeddings=64)
    marks = {"bos_token_id": tokenizer.cls_token_id, "eos_token_id": tokenizer.sep_token_id}
    config = transformers.GitConfig(vision_config=_vision(sizes), **{**text, **marks})
    side = sizes["side"]
    images = transformers.CLIPImageProcessor(size={"shortest_edge": side}, crop_size=side)
    return transformers.GitForCausalLM(config), transformers.GitProcessor(images, tokenizer)


def _mllama(sizes, folder):
    """Its decoder attends to the picture across, so that a prompt holds one id for it."""
    tokenizer = words("<|image|>", "<|eot|>", eos="<|eot|>", pad="<|pad|>", bos="<|begin|>")
    side = sizes["side"]
    vision = transformers.MllamaVisionConfig(
        hidden_size=32, num_hidden_layers=2, num_global_layers=1, attention_heads=2, intermediate_size=64,
        image_size=side, patch_size=sizes["patch"], max_num_tiles=1, supported_aspect_ratios=[[1, 1]],
        intermediate_layers_indices=[0], vision_output_dim=64,
    )  # fmt: skip
    text = transformers.MllamaTextConfig(
        vocab_size=len(tokenizer), hidden_size=32, num_hidden_layers=3, num_attention_heads=2,
        num_key_value_heads=2, intermediate_size=64, cross_attention_layers=[1],
        bos_token_id=tokenizer.bos_token_id, eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )  # fmt: skip
    image = tokenizer.convert_tokens_to_ids("<|image|>")
    model = transformers.MllamaForConditionalGeneration(
        transformers.MllamaConfig(vision_config=vision, text_config=text, image_token_index=image)
    )
    pixels = transformers.MllamaImageProcessor(size={"height": side, "width": side}, max_image_tiles=1)
    template = CHATML.replace("IMAGE", "<|image|>")
    return model, transformers.MllamaProcessor(pixels, tokenizer, chat_template=template)


FAMILIES = {
    "qwen2-vl": partial(_qwen, third=False), "qwen3-vl": partial(_qwen, third=True),
    "idefics3": _idefics, "llava-onevision": _llava,
    "gemma3": _gemma, "paligemma": _paligemma, "blip": _blip, "git": _git,
    "mllama": _mllama,
}  # fmt: skip
