"""Rotation: RoPE turns queries and keys; only the difference of positions counts. And films of what it depends on."""

from posviz.ui import shell
from posviz.ui.scenes import films

setting = shell.open_page()
film = films.chosen()
shell.header(setting, film.question(), film.claim(), strip=False)
films.tools(setting, film)
with shell.guard():
    scene = film.build(setting)
    film.show(scene)
    film.remark(setting, scene)
    shell.proof(film.proof(scene))
    film.more(scene)
    shell.details(
        "rotation",
        formula=lambda: film.formula(scene),
        code=lambda: film.code(setting, scene),
        save=lambda: film.downloads(setting, scene),
        badge=film.badge(setting),
    )
