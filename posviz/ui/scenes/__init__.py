"""One module a page: what it shows (``build``), the canvas (``show``), the numbers (``proof``), the details."""
