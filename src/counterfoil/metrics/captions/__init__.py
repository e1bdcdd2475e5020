"""Metrics of captions as arithmetic: on words, on one embedding per item, on one per token and frame.

Functions that give a number per caption: `ngrams.bleu`, `ngrams.rouge_l` and `cider.cider` of words as
`ptb.tokenize_all` cuts them; `clip_score.clip_s` and `ref_clip_s` of embeddings (PAC-S with `PAC_WEIGHT`);
`token_match.with_videos`, `with_references` and `token_match` of tokens and frames. METEOR and SPICE are
programs, and metrics with a model behind them are in `counterfoil.models.captions`.

>>> from counterfoil.metrics.captions.ptb import tokenize_all
>>> from counterfoil.metrics.captions.ngrams import load, rouge_l
>>> rouge_l(load(tokenize_all(["A cat sleeps."]), [tokenize_all(["A cat sleeps on a sofa."])])).round(4)
array([0.6289])
"""
