"""Tiny models of image-text matching, made by the real classes, with WordPiece and byte-pair tokenizers."""

import string

import transformers

from tiny_families import save_model

LAYERS = {"num_hidden_layers": 2, "num_attention_heads": 2, "hidden_size": 32, "intermediate_size": 64}
WORDS = ("a", "red", "cat", "dog", "on", "the", "mat", "photo", "of", "in", "two", "birds", "sit", "wire")
#: BERT's marks, letters and words: every text has tokens, and most words several.
PIECES = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *string.ascii_lowercase, *string.punctuation)
VOCABULARY = (*PIECES, *(f"##{letter}" for letter in string.ascii_lowercase), *WORDS[1:])
OF_REGIONS = ("lxmert", "visual_bert")
NAMES = ("blip", "blip-2", "vilt", "flava")


def save(name, folder, **sizes):
    """A tiny model of a family in a folder, as people save them, with tokenizer and image processor.

    `sizes` are those of a BLIP that is larger, for benchmarks: side, patch, width, layers, heads,
    vision_width and vision_layers.
    """
    folder.mkdir(parents=True, exist_ok=True)
    kind, config, processor = _blip(**sizes) if name == "blip" else _parts(name)
    save_model(kind, config, folder)
    if processor is not None:
        processor.save_pretrained(folder)
    (folder / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n")
    transformers.BertTokenizer(str(folder / "vocab.txt")).save_pretrained(folder)


def _blip(side=32, patch=8, width=32, layers=2, heads=2, vision_width=32, vision_layers=2):
    size = len(VOCABULARY)

    def tower(width, layers):
        inner = {"hidden_size": width, "intermediate_size": 4 * width}
        return {**inner, "num_hidden_layers": layers, "num_attention_heads": heads}

    config = transformers.BlipConfig(
        # The two rows more than the tokenizer has are [DEC] and [ENC].
        text_config={
            **tower(width, layers),
            "vocab_size": size + 2,
            "encoder_hidden_size": vision_width,
            "bos_token_id": size,
            "sep_token_id": VOCABULARY.index("[SEP]"),
        },
        vision_config={**tower(vision_width, vision_layers), "image_size": side, "patch_size": patch},
        image_text_hidden_size=16,
    )
    processor = transformers.BlipImageProcessor(size={"height": side, "width": side})
    return transformers.BlipForImageTextRetrieval, config, processor


def _parts(name):
    size = len(VOCABULARY)
    if name == "lxmert":
        layers = {"l_layers": 2, "x_layers": 2, "r_layers": 1, "num_attention_heads": 2}
        config = transformers.LxmertConfig(
            vocab_size=size, hidden_size=32, intermediate_size=64, visual_feat_dim=12, **layers
        )
        return transformers.LxmertForPreTraining, config, None
    if name == "visual_bert":
        config = transformers.VisualBertConfig(**LAYERS, vocab_size=size, visual_embedding_dim=12)
        return transformers.VisualBertForPreTraining, config, None
    vision = {**LAYERS, "image_size": 32, "patch_size": 8}
    square = {"size": {"height": 32, "width": 32}}
    if name == "blip-2":
        queries = {**LAYERS, "vocab_size": size, "encoder_hidden_size": 32, "cross_attention_frequency": 1}
        config = transformers.Blip2Config(
            vision_config=vision,
            qformer_config={**queries, "use_qformer_text_input": True},
            text_config={"model_type": "opt", "hidden_size": 32, "ffn_dim": 64, "num_hidden_layers": 1,
                         "num_attention_heads": 2, "vocab_size": size, "word_embed_proj_dim": 32},
            num_query_tokens=4, image_text_hidden_size=16, image_token_index=size,
        )  # fmt: skip
        return transformers.Blip2ForImageTextRetrieval, config, transformers.BlipImageProcessor(**square)
    if name == "vilt":
        config = transformers.ViltConfig(**LAYERS, vocab_size=size, image_size=32, patch_size=8)
        processor = transformers.ViltImageProcessor(size={"shortest_edge": 32}, size_divisor=8)
        return transformers.ViltForImageAndTextRetrieval, config, processor
    config = transformers.FlavaConfig(
        image_config={**vision, "vocab_size": 16},
        text_config={**LAYERS, "vocab_size": size},
        multimodal_config=LAYERS,
        hidden_size=32, projection_dim=16, init_codebook=False,
    )  # fmt: skip
    processor = transformers.FlavaImageProcessor(
        **square, crop_size=square["size"], return_codebook_pixels=False, return_image_mask=False
    )
    return transformers.FlavaForPreTraining, config, processor
