"""A model by its name on the Hugging Face hub: into the hub's own cache, then it is a folder like any other."""

import glob
import re
from pathlib import Path
from typing import Any

from posviz.models.pretrained.limits import Limits
from posviz.types import Refusal, Text, shown

NAME = re.compile(r"(?!.*(\.\.|--))[\w][\w.-]*(/[\w][\w.-]*)?", re.ASCII)
LONGEST_NAME = 96
SUFFIXES = (".json", ".txt", ".safetensors")  # no code, no pickles
SECONDS = 10.0


def is_name(where: str) -> bool:
    return len(where) <= LONGEST_NAME and NAME.fullmatch(where) is not None


def check_allowed(name: str, limits: Limits) -> None:
    if limits.names is not None and name not in limits.names:
        raise Refusal(
            Text(
                "on this server a model must be one of {allowed}, got {got}",
                "在这台服务器上模型只能是 {allowed} 之一，现在是 {got}",
            ),
            field="model",
            allowed=", ".join(limits.names) or Text("none", "无"),
            got=shown(name),
        )


def fetch(name: str, limits: Limits) -> Path:
    """The folder of a model in the hub's cache, downloaded if it is not there; :class:`Refusal` if it cannot be."""
    import huggingface_hub
    from huggingface_hub import errors

    check_allowed(name, limits)
    try:
        cached = Path(
            huggingface_hub.snapshot_download(
                name, local_files_only=True, allow_patterns=[f"*{end}" for end in SUFFIXES]
            )
        )
        if any(cached.glob("*.safetensors")):
            return cached
    except (errors.LocalEntryNotFoundError, OSError, ValueError):
        pass  # not in the cache
    try:
        about = huggingface_hub.HfApi().model_info(name, files_metadata=True, timeout=SECONDS)
        files = _wanted(name, about, limits)
        return Path(huggingface_hub.snapshot_download(name, revision=about.sha, allow_patterns=files))
    except Refusal:
        raise
    except errors.GatedRepoError:
        raise _no(
            name,
            Text("{name} asks for a licence to be accepted on the hub first", "{name} 要先在 hub 上接受许可协议"),
        ) from None
    except errors.RepositoryNotFoundError:
        raise _no(name, Text("there is no public model {name} on the hub", "hub 上没有公开的模型 {name}")) from None
    except Exception as error:  # no network, a proxy's page, a server that is down: one sentence for all
        raise _no(
            name,
            Text(
                "{name} is not on this machine, and the hub cannot be reached ({why}); a local folder works offline",
                "本机没有 {name}，也连不上 hub（{why}）；本地文件夹可离线使用",
            ),
            why=type(error).__name__,
        ) from None


def _no(name: str, text: Text, **values: Any) -> Refusal:
    return Refusal(text, field="model", name=shown(name), **values)


def _wanted(name: str, about: Any, limits: Limits) -> list[str]:
    """Patterns of the files to download, none of them in a folder; refused before that: no safetensors, or too large.

    Limit: 4 bytes a parameter for all files together.
    """
    wanted = [f for f in about.siblings or () if f.rfilename.endswith(SUFFIXES) and "/" not in f.rfilename]
    if not any(f.rfilename.endswith(".safetensors") for f in wanted):
        raise _no(
            name,
            Text(
                "{name} has no weights as .safetensors; other formats are not read",
                "{name} 没有 .safetensors 格式的权重；别的格式不读",
            ),
        )
    size = sum(f.size or 0 for f in wanted)
    if size > 4 * limits.parameters:
        raise _no(
            name,
            Text(
                "the files of {name} have {got:,} bytes; up to {limit:,} are downloaded",
                "{name} 的文件有 {got:,} 字节；最多下载 {limit:,} 字节",
            ),
            got=size,
            limit=4 * limits.parameters,
        )
    return [glob.escape(f.rfilename) for f in wanted]
