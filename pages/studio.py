"""Studio: every layer and head of a trained model, down to one weight."""

from posviz.ui import blocks, shell
from posviz.ui.lang import _
from posviz.ui.scenes import studio, studio_views

setting = shell.open_page()
shell.header(setting, _("What does every head of a trained model look at?"), studio.claim(), strip=False)
with shell.guard(quiet=True):
    studio.toolbar()
with shell.guard():
    if studio.agreed():
        scene = studio.build(setting)
        studio.strip(scene)
        studio_views.gather_bar(scene)
        picture = studio_views.picture(scene)
        picture.mount()
        shell.proof(studio.proof(scene))
        for sentence in studio.notes(scene):
            blocks.note(sentence)
        shell.details(
            "studio",
            code=lambda: picture.code,
            save=lambda: studio_views.downloads(scene, picture, studio.badge(scene)),
            badge=studio.badge(scene),
        )
