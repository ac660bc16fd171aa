"""Check my code in a browser: pasted numbers stay in the link, uploaded files do not."""

import json

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from posviz import encodings

pytestmark = pytest.mark.browser

X = torch.randn(2, 16, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
Y = encodings.make("rope", pairing="interleaved", base=500_000.0).rotate(X, [70, 71])
SAID = "pairs dimensions 2i and 2i + 1 (GPT-J); base 500000 instead of 10000"
FOUND = "said => pv.idle() && document.querySelector('.pv-findings')?.textContent === said"


def fill(one, name: str, text: str) -> None:
    area = one.widget(f"w_{name}").locator("textarea")
    area.fill(text)
    area.press("Control+Enter")


def test_pasted_vectors_are_explained_and_linked(visit) -> None:
    one = visit("/check?lang=en", still=True)
    one.number("w_cp", "70")
    one.until_params(cp="70")
    fill(one, "cq", json.dumps(X.tolist()))
    one.until("() => pv.alerts().length === 1")
    fill(one, "ca", json.dumps(Y.tolist()))
    one.until(FOUND, SAID)
    one.until("() => new URLSearchParams(location.search).get('ca')")
    kept = one.numbers()
    again = visit(one.page.url.removeprefix(one.server), still=True)
    again.until(FOUND, SAID)
    assert again.numbers() == kept
    again.canvas.focus()
    again.page.keyboard.press("End")
    again.until_data(at=15)


def test_uploaded_files_are_read(visit, tmp_path) -> None:
    one = visit("/check?lang=en&cp=70", still=True)
    np.save(tmp_path / "before.npy", X.numpy())
    save_file({"q": Y.float()}, tmp_path / "after.safetensors")
    for index, name in enumerate(("before.npy", "after.safetensors")):
        one.page.get_by_test_id("stPopover").get_by_role("button").nth(index).click()
        one.page.get_by_test_id("stFileUploaderDropzoneInput").last.set_input_files(tmp_path / name)
        one.until("first => pv.idle() && (pv.alerts().length === 1) === first", index == 0)
        if index == 0:  # only one side is there; the other's box opens once this one is closed
            one.page.keyboard.press("Escape")
    one.until(FOUND, SAID)
    assert "cq" not in one.params()
