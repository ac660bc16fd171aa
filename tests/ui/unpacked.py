"""What a canvas receives, read as base.js reads it."""

import json
from typing import Any

import numpy as np

CODES = {"f8": "<f8", "f4": "<f4", "i4": "<i4", "i2": "<i2", "u1": "u1"}


def unpack(data: bytes) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The same steps as unpack() in base.js: the JSON, and the arrays by name."""
    size = int.from_bytes(data[:4], "little")
    meta = json.loads(data[4 : 4 + size])
    start = -(-(4 + size) // 8) * 8
    arrays = {}
    for entry in meta["arrays"]:
        count = int(np.prod(entry["shape"]))
        flat = np.frombuffer(data, CODES[entry["dtype"]], count, start + entry["offset"])
        arrays[entry["name"]] = flat.reshape(entry["shape"])
    return meta, arrays
