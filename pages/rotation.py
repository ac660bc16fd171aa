"""Rotation: RoPE turns queries and keys; only the difference of positions counts."""

from posviz.ui import shell
from posviz.ui.lang import _
from posviz.ui.scenes import rotation

setting = shell.open_page()
shell.header(
    setting,
    _("How does RoPE keep only the distance?"),
    _("Query and key turn by their own positions; move both, and the angles between them and the score stand still."),
    strip=False,
    tools=lambda: rotation.toolbar(setting),
)
with shell.guard():
    scene = rotation.build(setting)
    rotation.show(scene)
    rotation.remark(setting)
    shell.proof(rotation.proof(scene))
    rotation.digits_error(scene)
    shell.details(
        "rotation",
        formula=lambda: rotation.formula(scene),
        code=lambda: rotation.code(setting, scene),
        save=lambda: rotation.downloads(setting, scene),
        badge=shell.untrained(setting),
    )
