"""RoPE workbench: what a real model's RoPE does beyond the length it was trained on."""

from posviz.ui import shell
from posviz.ui.lang import _
from posviz.ui.scenes import rope, rope_controls

setting = shell.open_page()
shell.header(
    setting,
    _("What happens to RoPE beyond the length it was trained on?"),
    _("Slow pairs reach angles that training never showed; a scaling slows just those down."),
    strip=False,
    tools=rope_controls.toolbar,
)
rope_controls.choosers()
with shell.guard():
    scene = rope.build()
    rope.show(scene)
    shell.proof(rope.proof(scene))
    rope.about(scene)
    shell.details(
        "rope",
        formula=lambda: rope.formula(scene),
        code=lambda: rope.code(scene),
        save=lambda: rope.downloads(scene),
        badge=_("computed from config.json alone: no weights"),
    )
