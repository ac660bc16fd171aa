"""Heatmap: what an encoding looks like, cell by cell."""

from posviz.ui import blocks, shell
from posviz.ui.lang import _
from posviz.ui.scenes import heatmap

setting = shell.open_page()
shell.header(
    setting,
    _("What does each position's encoding look like?"),
    heatmap.claim(setting),
    strip=False,
    tools=lambda: heatmap.toolbar(setting),
)
with shell.guard():
    scene = heatmap.build(setting)
    if scene.picture is None:
        blocks.note(_("“No position” adds nothing, so there is nothing to draw: choose an encoding in the sidebar."))
    else:
        heatmap.show(setting, scene)
        heatmap.substituted(setting, scene)
        shell.proof(heatmap.proof(setting, scene))
        heatmap.digits_error(scene)
        shell.details(
            "heatmap",
            formula=lambda: heatmap.formula(setting),
            code=lambda: heatmap.code(setting, scene),
            save=lambda: heatmap.downloads(setting, scene),
            badge=scene.badge,
        )
