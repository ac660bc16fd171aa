"""posviz: how a Transformer knows the order of its words, as numbers and pictures.

>>> import posviz
>>> from posviz import attention, encodings, text
>>> spec = encodings.make("sinusoidal", base=10_000.0)
>>> trace = attention.attend(text.tokenize("我爱你"), spec, posviz.Dims(d_model=64, n_heads=4))
>>> trace.weights.shape
(4, 3, 3)
"""

from posviz.types import AttentionTrace, Dims, Refusal, Text, Tokens

__version__ = "0.1.0"
__all__ = ["AttentionTrace", "Dims", "Refusal", "Text", "Tokens", "__version__"]
