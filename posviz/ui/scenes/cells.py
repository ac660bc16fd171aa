"""A picture of :mod:`posviz.views` as a panel of the matrix canvas, for every page that shows one."""

import numpy as np

from posviz import views
from posviz.ui.canvas import matrix as canvas
from posviz.ui.lang import N_, _, labels

WHOLE = 2_000_000  # cells of a table that are sent whole; larger ones as an overview with windows

# axis names: (rows, columns), and how a row and a column are called in the picture
AXES = {
    "table": (N_("position"), N_("dimension")),
    "cos": (N_("position"), N_("pair")),
    "sin": (N_("position"), N_("pair")),
    "angle": (N_("position"), N_("pair")),
    "bias": (N_("query"), N_("key")),
    "distance_table": (N_("distance key − query"), N_("dimension of a head")),
    "grid": (N_("row of patches"), N_("column of patches")),
}


def source(
    picture: views.Picture, head: int, *, window: object = None, cross: tuple[int, int] = (0, 0)
) -> canvas.Source:
    """The cells of one head as the browser needs them. window: see :func:`posviz.ui.canvas.matrix.overview`."""
    cells = picture.sources[head]
    if isinstance(cells, views.Waves):
        return canvas.Sinusoid(
            omega=cells.frequencies, is_cos=cells.is_cos, rows=cells.rows, start=cells.start, wrap=cells.wrap
        )
    if isinstance(cells, views.Diagonals):
        return canvas.Toeplitz(profile=cells.profile, rows=cells.rows, cols=cells.rows)
    values = cells.values[: picture.defined_rows]
    if values.size <= WHOLE:
        return canvas.Dense(values=np.asarray(values))
    return canvas.overview(values, window=window, cross=cross)


def _ruler(picture: views.Picture) -> list[tuple[int, str]]:
    """About eight wavelengths along the top."""
    if picture.wavelengths is None:
        return []
    cols = len(picture.wavelengths)
    step = max(1, round(cols / 8))
    return [(c, f"λ {picture.wavelengths[c]:,.0f}") for c in range(0, cols, step)]


def panel(
    picture: views.Picture,
    title: str,
    *,
    head: int = 0,
    limit: float | None = None,
    window: object = None,
    cross: tuple[int, int] = (0, 0),
) -> canvas.Panel:
    """A picture as one panel; limit: the end of its colour scale, by default the picture's own."""
    limit = picture.limit if limit is None else limit
    rows, columns = AXES[picture.view]
    return canvas.Panel(
        source=source(picture, head, window=window, cross=cross),
        vmin=-limit,
        vmax=limit,
        title=title,
        row_start=picture.first_row,
        rows=picture.shape[0],
        valid_rows=picture.defined_rows,
        x_label=_(columns),
        y_label=_(rows),
        ruler=_ruler(picture),
        col_info=picture.wavelengths,
    )


def picture_labels(view: str) -> dict[str, str]:
    """The canvas's texts for a view."""
    texts = labels(canvas.LABELS)
    names = {
        "bias": (_("Query {row}"), _("key {col}"), _("Key {col}"), _("query {row}, key {col}")),
        "distance_table": (
            _("Distance {row}"),
            _("dimension {col}"),
            _("Dimension {col}"),
            _("distance {row}, dimension {col}"),
        ),
        "grid": (
            _("Patch row {row}"),
            _("patch column {col}"),
            _("Patch column {col}"),
            _("patch in row {row}, column {col}"),
        ),
    }
    for name in ("cos", "sin", "angle"):
        names[name] = (_("Position {row}"), _("pair {col}"), _("Pair {col}"), _("position {row}, pair {col}"))
    if view in names:
        texts |= dict(zip(("row", "at", "column", "cell"), names[view], strict=True))
    return texts
