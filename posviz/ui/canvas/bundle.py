"""One bytes object per picture: JSON and arrays side by side.

Streamlit hands top-level ``bytes`` to a component as a ``Uint8Array`` without copying or base64,
but turns bytes nested in a dict into strings; so everything a canvas needs travels in one blob.

Layout, little endian: uint32 length of the JSON | JSON (UTF-8) | zero padding to a multiple of 8 |
the arrays, each starting at a multiple of 8. ``base.js`` reads it.
"""

import base64
import gzip
import html
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

_CODES = {"float64": "f8", "float32": "f4", "int32": "i4", "int16": "i2", "uint8": "u1"}
_HERE = Path(__file__).parent


def pack(meta: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> bytes:
    """Join ``meta`` (JSON) and ``arrays`` (float64, float32, int32, int16 or uint8) into one blob."""
    entries, bodies, offset = [], [], 0
    for name, array in arrays.items():
        body = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
        entries.append({"name": name, "dtype": _CODES[array.dtype.name], "shape": list(array.shape), "offset": offset})
        bodies.append(body + b"\0" * (-len(body) % 8))
        offset += len(bodies[-1])
    # ensure_ascii keeps lone surrogates from typed text encodable; NaN is not JSON, so it is refused here.
    text = json.dumps({**meta, "arrays": entries}, allow_nan=False).encode("ascii")
    return len(text).to_bytes(4, "little") + text + b"\0" * (-(4 + len(text)) % 8) + b"".join(bodies)


def script(name: str) -> str:
    """The JavaScript module of one component: the shared part, the parts it needs and its own.

    A first line ``// needs parts/labels.js, parts/....js`` in the component's file names those parts.
    """
    own = (_HERE / f"{name}.js").read_text("utf-8")
    parts = re.findall(r"parts/\w+\.js", own.partition("\n")[0])
    return "\n".join([*((_HERE / file).read_text("utf-8") for file in ("base.js", *parts)), own])


def style(name: str) -> str:
    """The CSS of one component: the shared part and, if there is one, its own."""
    own = _HERE / f"{name}.css"
    return (_HERE / "base.css").read_text("utf-8") + (own.read_text("utf-8") if own.exists() else "")


_PAGE = """<!doctype html>
<html lang="{lang}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
:root {{ --st-background-color: #ffffff; --st-text-color: #1c2330; --st-border-color: #d5d9e0;
  --st-primary-color: #0f9d8a; --st-font: "Source Sans", system-ui, "Noto Sans CJK SC", "PingFang SC",
  "Microsoft YaHei", sans-serif; }}
@media (prefers-color-scheme: dark) {{ :root {{ --st-background-color: #12151c; --st-text-color: #e6e9ef;
  --st-border-color: #3a4150; }} }}
body {{ margin: 24px; background: var(--st-background-color); color: var(--st-text-color);
  font-family: var(--st-font); }}
h1 {{ font-size: 28px; margin: 0 0 4px; }} p {{ font-size: 17px; margin: 0 0 16px; opacity: .8; }}
{style}
</style>
</head>
<body>
<h1>{title}</h1><p>{caption}</p><div id="root"></div>
<script type="module">
{script}
const packed = Uint8Array.from(atob("{data}"), (c) => c.charCodeAt(0))
const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"))
const bytes = new Uint8Array(await new Response(stream).arrayBuffer())
const component = {{ data: bytes, parentElement: document.getElementById("root"), setStateValue() {{}} }}
render(component)
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => render(component))
</script>
</body>
</html>
"""


def standalone_html(name: str, data: bytes, *, title: str, caption: str = "", lang: str = "en") -> str:
    """The same picture as a page that needs neither a server nor a network."""
    return _PAGE.format(
        lang=html.escape(lang),
        title=html.escape(title),
        caption=html.escape(caption),
        style=style(name),
        script=script(name).replace("export default ", "const render = "),
        data=base64.b64encode(gzip.compress(data, 6, mtime=0)).decode("ascii"),
    )
