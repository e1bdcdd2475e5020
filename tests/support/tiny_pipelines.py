"""Diffusion pipelines of the real classes with tiny random weights, saved in their real layout."""

from string import ascii_lowercase

import diffusers
import torch
import transformers
from diffusers.pipelines.stable_diffusion.safety_checker import StableDiffusionSafetyChecker

from tiny_families import save_clip_tokenizer

#: How many of CLIP's merges the tokenizers hold: each test reads several, and all of them take 0.3 s.
_MERGES = 500

#: Sizes of the text encoders.
_TEXT = {
    "vocab_size": _MERGES + 514, "hidden_size": 32, "intermediate_size": 37, "num_hidden_layers": 2,
    "num_attention_heads": 4, "projection_dim": 32, "bos_token_id": _MERGES + 512,
    "eos_token_id": _MERGES + 513,
}  # fmt: skip


def save_pipelines(place):
    """`sd` with a safety checker, `sdxl`, `dpo` (a UNet alone, in its subfolder) and `sd3`, in `place`."""
    tokenizer = place / "clip"
    save_clip_tokenizer(tokenizer, _MERGES)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        _sd(tokenizer).save_pretrained(place / "sd")
        _sdxl(tokenizer).save_pretrained(place / "sdxl")
        _unet(text=64, **_TEXT_TIME).save_pretrained(place / "dpo" / "unet")
        _sd3(tokenizer).save_pretrained(place / "sd3")


#: What SDXL's UNet has besides: pooled text and the sizes that an image is taken to have.
_TEXT_TIME = {
    "addition_embed_type": "text_time",
    "addition_time_embed_dim": 8,
    "projection_class_embeddings_input_dim": 80,
}


def _sd(tokenizer):
    vision = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 37,
              "image_size": 30, "patch_size": 15}  # fmt: skip
    checker = StableDiffusionSafetyChecker(
        transformers.CLIPConfig(
            text_config={**_TEXT, "projection_dim": 16}, vision_config=vision, projection_dim=16
        )
    )
    # Cosines above the first threshold are flagged; 1 flags none.
    checker.concept_embeds_weights.data.fill_(1.0)
    checker.special_care_embeds_weights.data.fill_(1.0)
    return diffusers.StableDiffusionPipeline(
        vae=_vae(4),
        text_encoder=transformers.CLIPTextModel(transformers.CLIPTextConfig(**_TEXT)),
        tokenizer=transformers.CLIPTokenizer.from_pretrained(tokenizer),
        unet=_unet(text=32),
        scheduler=diffusers.PNDMScheduler(
            beta_start=0.00085,
            beta_end=0.012,
            beta_schedule="scaled_linear",
            skip_prk_steps=True,
            steps_offset=1,
        ),
        safety_checker=checker,
        feature_extractor=transformers.CLIPImageProcessor(size={"shortest_edge": 30}, crop_size=30),
    )


def _sdxl(tokenizer):
    config = transformers.CLIPTextConfig(**_TEXT)
    return diffusers.StableDiffusionXLPipeline(
        vae=_vae(4),
        text_encoder=transformers.CLIPTextModel(config),
        text_encoder_2=transformers.CLIPTextModelWithProjection(config),
        tokenizer=transformers.CLIPTokenizer.from_pretrained(tokenizer),
        tokenizer_2=transformers.CLIPTokenizer.from_pretrained(tokenizer),
        unet=_unet(text=64, **_TEXT_TIME),
        scheduler=diffusers.EulerDiscreteScheduler(
            beta_start=0.00085, beta_end=0.012, beta_schedule="scaled_linear", steps_offset=1
        ),
        add_watermarker=False,
    )


def _sd3(tokenizer):
    config = transformers.CLIPTextConfig(**_TEXT)
    t5 = transformers.T5Config(
        vocab_size=len(_pieces()), d_model=64, d_kv=8, d_ff=32, num_layers=1, num_heads=2
    )
    return diffusers.StableDiffusion3Pipeline(
        vae=_vae(8, shift_factor=0.06),
        text_encoder=transformers.CLIPTextModelWithProjection(config),
        text_encoder_2=transformers.CLIPTextModelWithProjection(config),
        text_encoder_3=transformers.T5EncoderModel(t5),
        tokenizer=transformers.CLIPTokenizer.from_pretrained(tokenizer),
        tokenizer_2=transformers.CLIPTokenizer.from_pretrained(tokenizer),
        tokenizer_3=transformers.T5TokenizerFast(vocab=_pieces(), extra_ids=0, model_max_length=512),
        transformer=diffusers.SD3Transformer2DModel(
            sample_size=16, patch_size=1, in_channels=8, out_channels=8, num_layers=1, attention_head_dim=8,
            num_attention_heads=4, caption_projection_dim=32, joint_attention_dim=64,
            pooled_projection_dim=64, pos_embed_max_size=16,
        ),
        scheduler=diffusers.FlowMatchEulerDiscreteScheduler(),
    )  # fmt: skip


def _pieces():
    """The vocabulary of a T5: letters, alone and at the start of a word."""
    marks = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)]
    return marks + [(f"{start}{letter}", -3.0) for start in ("", "▁") for letter in ascii_lowercase]


def _unet(*, text, **more):
    return diffusers.UNet2DConditionModel(
        block_out_channels=(4, 8), layers_per_block=1, sample_size=16, in_channels=4, out_channels=4,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
        cross_attention_dim=text, norm_num_groups=2, attention_head_dim=2, **more,
    )  # fmt: skip


def _vae(channels, **more):
    return diffusers.AutoencoderKL(
        block_out_channels=(4, 8), in_channels=3, out_channels=3, norm_num_groups=2,
        down_block_types=("DownEncoderBlock2D",) * 2, up_block_types=("UpDecoderBlock2D",) * 2,
        latent_channels=channels, **more,
    )  # fmt: skip
