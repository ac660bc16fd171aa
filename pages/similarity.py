"""Similarity: how alike an encoding makes two positions, against their distance."""

from posviz.ui import shell
from posviz.ui.lang import _
from posviz.ui.scenes import similarity

setting = shell.open_page()
shell.header(
    setting,
    _("How alike are two positions?"),
    similarity.claim(),
    strip=False,
    tools=lambda: similarity.toolbar(setting),
)
with shell.guard():
    scene = similarity.build(setting)
    similarity.show(setting, scene)
    shell.proof(similarity.proof(setting, scene))
    similarity.digits_error(setting, scene)
    similarity.tables(setting, scene)
    shell.details(
        "similarity",
        formula=lambda: similarity.formula(setting, scene),
        code=lambda: similarity.code(setting, scene),
        save=lambda: similarity.downloads(setting, scene),
        badge=similarity.badge(setting, scene),
    )
