"""Surgery: a trained model's weights stay, the positions of the words change."""

from posviz.ui import blocks, shell
from posviz.ui.lang import _
from posviz.ui.scenes import surgery, surgery_details

setting = shell.open_page()
shell.header(setting, _("What does a trained model lose without its positions?"), surgery.claim(), strip=False)
with shell.guard(quiet=True):
    surgery.toolbar(setting)
with shell.guard():
    if not surgery.asks():
        scene = surgery.build(setting)
        surgery.strip(scene)
        surgery.show(scene)
        shell.proof(surgery.proof(scene))
        surgery_details.losses(setting, scene)
        for sentence in surgery_details.notes(scene):
            blocks.note(sentence)
        surgery_details.english(scene)
        shell.details(
            "surgery",
            formula=lambda: surgery_details.formula(scene),
            code=lambda: surgery_details.code(scene),
            save=lambda: surgery_details.downloads(scene),
            badge=surgery_details.badge(scene),
        )
