"""Check my code: which convention of RoPE turned these vectors?"""

from posviz.ui import shell
from posviz.ui.lang import _
from posviz.ui.scenes import check

setting = shell.open_page()
shell.header(
    setting,
    _("Does my code turn the way I think it does?"),
    _("Paste a query or key before and after its rotation: the convention that does it is found, nothing is run."),
    strip=False,
)
check.inputs()
with shell.guard():
    scene = check.build()
    check.answer(scene)
    check.show(scene)
    shell.proof(check.proof(scene))
    shell.details(
        "check",
        formula=lambda: check.formula(scene),
        code=lambda: check.code(scene),
        save=lambda: check.downloads(scene),
    )
