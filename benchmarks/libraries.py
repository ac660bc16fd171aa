"""The scripts that a saved BertViz page asks of a content delivery network, so that it is painted without one.

They are fetched once into ``build/``, which git ignores: from the address in the page or, where that cannot be
reached, from the package of the same name and version on npm.
"""

import re
import shutil
import subprocess
import tarfile
import tempfile
import urllib.request
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "build/libraries"
SECONDS = 20  # for the network's answer
ADDRESS = re.compile(r"https://[\w./-]+/ajax/libs/(?P<name>[\w.-]+)/(?P<version>[\d.]+)/[\w.-]+?(?:\.js)?(?=[\"'])")
# what the network calls it: npm's package, and the file in it
PACKAGES = {
    "require.js": ("requirejs", "require.js"),
    "d3": ("d3", "dist/d3.min.js"),
    "jquery": ("jquery", "dist/jquery.min.js"),
}
# npm has no jQuery 2 before this one. BertViz asks it for elements and for events, not to draw.
NEAREST = {"jquery@2.0.0": "jquery@2.1.0"}


def fetch(page: str) -> tuple[dict[str, bytes], list[str]]:
    """({address: script} for all that the page will ask for, the versions at hand); RuntimeError where one is missing."""
    scripts, versions = {}, []
    for found in ADDRESS.finditer(page):
        name, version = found["name"], found["version"]
        address = found[0].removesuffix(".js") + ".js"  # require.js adds the ending
        if address not in scripts:
            scripts[address], label = _script(address, name, version)
            versions.append(label)
    return scripts, versions


def _script(address: str, name: str, version: str) -> tuple[bytes, str]:
    """(the script, its name and version), from the folder, the network or npm."""
    package, inside = PACKAGES.get(name, (name, ""))
    wanted = f"{package}@{version}"
    labels = [wanted, *filter(None, [NEAREST.get(wanted)])]
    for label in labels:
        if (file := FOLDER / f"{label}.js").exists():
            return file.read_bytes(), label
    FOLDER.mkdir(parents=True, exist_ok=True)
    label, script = wanted, _from_address(address)
    for label in labels if script is None and inside else ():
        if script := _from_npm(label, inside):
            break
    if script is None:
        raise RuntimeError(f"no {wanted}: neither its address nor npm can be reached")
    (FOLDER / f"{label}.js").write_bytes(script)
    return script, label


def _from_address(address: str) -> bytes | None:
    try:
        with urllib.request.urlopen(address, timeout=SECONDS) as answer:
            return answer.read()
    except OSError:
        return None


def _from_npm(label: str, inside: str) -> bytes | None:
    """One file of a package, which is only downloaded: nothing is installed or run."""
    npm = shutil.which("npm")
    if npm is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        command = [
            npm,
            "pack",
            label,
            "--ignore-scripts",
            "--silent",
            "--fetch-retries=1",
            "--pack-destination",
            folder,
        ]
        try:
            done = subprocess.run(command, cwd=folder, capture_output=True, timeout=6 * SECONDS)
        except subprocess.TimeoutExpired:
            return None
        files = list(Path(folder).glob("*.tgz"))
        if done.returncode or not files:
            return None
        with tarfile.open(files[0]) as archive:
            member = archive.extractfile(f"package/{inside}")
            return member.read() if member else None
