"""Compare: every encoding in one table, measured for the current sizes; two of them side by side; a guide."""

from posviz.ui import blocks, shell
from posviz.ui.lang import _
from posviz.ui.scenes import compare, guide, pair

setting = shell.open_page()
shell.header(
    setting,
    _("Which encoding does what?"),
    _("Every number is measured now, for these sizes and sentence A; only papers and model names are quoted."),
    strip=False,
)
with shell.guard():
    compare.toolbar()
    scene = compare.build(setting)
    compare.show(scene)
    shell.proof(compare.proof(scene))
    pair.toolbar()
    with shell.guard():
        pair.show(setting)
    guide.show(setting, scene)
    shell.details(
        "compare",
        formula=lambda: compare.formula(setting),
        code=lambda: compare.code(setting),
        save=lambda: compare.downloads(setting, scene),
        badge=shell.untrained(setting),
    )
    for sentence in compare.notes(setting, scene):
        blocks.note(sentence)
