"""Order: without position a sentence is a bag of words; with it, it is not."""

from posviz.ui import blocks, shell
from posviz.ui.lang import _
from posviz.ui.scenes import order

setting = shell.open_page()
shell.header(
    setting,
    _("Without positions, can a model tell who loves whom?"),
    order.claim(),
)
with shell.guard():
    scene = order.build(setting)
    order.show(scene)
    shell.proof(order.proof(setting, scene))
    for sentence in order.notes(setting, scene):
        blocks.note(sentence)
    order.twins(setting)
    shell.details(
        "order",
        formula=lambda: order.formula(scene),
        code=lambda: order.code(setting),
        save=lambda: order.downloads(setting, scene),
        badge=shell.untrained(setting),
    )
