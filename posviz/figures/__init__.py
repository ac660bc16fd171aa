"""Arrays and labels in, Plotly figures out: for notebooks and for what is saved.

Nothing here computes an encoding or attention, and ``import posviz`` does not load it:

>>> from posviz import figures
>>> figure = figures.heatmap([[1.0, -1.0]], x_label="dimension", y_label="position", title="A table")
>>> figure.data[0].z.tolist()
[[1.0, -1.0]]

Every function takes ``dark`` and checks its shapes (:class:`posviz.Refusal`, a ValueError). Texts are
drawn as they are: tags, entities and formulas in a token or a title are characters like any other.
"""

from posviz.figures.clocks import rotation_clock
from posviz.figures.curves import similarity_curves
from posviz.figures.heads import attention_difference, attention_heads
from posviz.figures.losses import loss_by_position, losses_before_after
from posviz.figures.parts import score_parts
from posviz.figures.roles import head_roles
from posviz.figures.tables import heatmap

__all__ = [
    "attention_difference",
    "attention_heads",
    "head_roles",
    "heatmap",
    "loss_by_position",
    "losses_before_after",
    "rotation_clock",
    "score_parts",
    "similarity_curves",
]
