"""Tables: what a learned table of positions holds, a trained one, a model's, or your own."""

from posviz.ui import shell
from posviz.ui.lang import _
from posviz.ui.scenes import table_pictures, tables

setting = shell.open_page()
shell.header(
    setting,
    _("What has a learned table of positions learned?"),
    _("Choose a table, or bring your own: it is measured here, beside sinusoids and beside chance."),
    strip=False,
    tools=lambda: tables.toolbar(setting),
)
with shell.guard():
    scene = tables.build(setting)
    tables.show(scene)
    shell.proof(tables.proof(scene))
    table_pictures.show(scene)
    tables.numbers(scene)
    shell.details(
        "tables",
        formula=lambda: tables.formula(scene),
        code=lambda: tables.code(setting, scene),
        save=lambda: tables.downloads(scene),
        badge=scene.chosen.badge,
    )
