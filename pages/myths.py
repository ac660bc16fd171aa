"""Myths: popular sentences about position encodings, predicted, then measured."""

from posviz.ui import shell
from posviz.ui.lang import _
from posviz.ui.scenes import myths

setting = shell.open_page()
shell.header(
    setting,
    _("True, false, or does it depend?"),
    _("Say what you think; then it is measured, with the sizes of the sidebar."),
    strip=False,
    tools=myths.toolbar,
)
with shell.guard():
    scene = myths.build(setting)
    myths.show(setting, scene)
    shell.proof(myths.proof(scene))
    shell.details(
        "myths",
        formula=lambda: myths.formula(),
        code=lambda: myths.code(setting),
        save=lambda: myths.downloads(setting, scene),
        badge=shell.untrained(setting),
    )
