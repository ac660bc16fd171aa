"""Attention: every head of both sentences, and their difference with the words matched."""

from posviz.ui import blocks, shell
from posviz.ui.lang import _
from posviz.ui.scenes import attention

setting = shell.open_page()
shell.header(
    setting,
    _("Same words, other order: what does each head look at?"),
    attention.claim(),
    strip_tools=attention.encoding_bar,
)
with shell.guard():
    scene = attention.build(setting)
    attention.show(scene)
    shell.proof(attention.proof(scene))
    for sentence in attention.notes(scene):
        blocks.note(sentence)
    shell.details(
        "attention",
        formula=lambda: attention.formula(scene),
        code=lambda: attention.code(setting, scene),
        save=lambda: attention.downloads(setting, scene),
        badge=attention.badge(setting, scene),
    )
