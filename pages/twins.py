"""Twins: small models trained on the same poems, alike but for their position encoding."""

from posviz.ui import blocks, shell
from posviz.ui.lang import _
from posviz.ui.scenes import twin_heads, twins

setting = shell.open_page()
shell.header(
    setting,
    _("What does knowing the position teach a model?"),
    twins.claim(),
    strip=False,
)
with shell.guard(quiet=True):
    twins.toolbar()
with shell.guard():
    scene = twins.build(setting)
    twins.show(scene)
    shell.proof(twins.proof(scene))
    twins.losses(setting, scene)
    twin_heads.roles(setting, scene.results.get("twins", {}), scene.names)
    twins.tables(setting, scene)
    for sentence in twins.notes(scene):
        blocks.note(sentence)
    shell.details(
        "twins",
        code=lambda: twins.code(scene),
        badge=twins.badge(setting, scene),
    )
