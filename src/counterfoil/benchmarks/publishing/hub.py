"""Publication on the hub: a data set repository made or updated in one commit, whole or not at all.

The address of the hub and the token are those of `huggingface_hub`: HF_ENDPOINT, HF_TOKEN, or the token that
`hf auth login` keeps.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from counterfoil.errors import InputError, MissingExtraError

#: What the hub refused, by the status of its answer, and what to do.
_REFUSALS = {
    401: ("the hub does not know the user", "log in with 'hf auth login', or set HF_TOKEN"),
    403: ("the token may not write there", "take a token with the right to write, and a name of one's own"),
    409: ("the data set exists already", "name another, or add a revision with --overwrite"),
}


@dataclass(frozen=True)
class Upload:
    """What came back from the hub: the page of the data set and the revision of the commit."""

    url: str
    revision: str


def check_repository(name: str) -> str:
    """The name, where it is OWNER/NAME as the hub writes it; raises `InputError` elsewhere.

    >>> check_repository("ann/cats")
    'ann/cats'
    """
    part = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
    if not re.fullmatch(f"{part}/{part}", name) or len(name) > 96 or "--" in name or ".." in name:
        raise InputError("not a data set of the hub", where="--to", given=name, allowed="hub:OWNER/NAME")
    return name


def upload(
    folder: Path, repository: str, *, private: bool = False, update: bool = False, message: str = ""
) -> Upload:
    """Make the repository and commit the folder's files to it; with `update` it may be there already.

    Its files that the folder does not have are deleted by the same commit. Raises `MissingExtraError` without
    `huggingface_hub`, and `InputError` where the hub refuses, the repository exists, or it cannot be reached.
    """
    try:
        import huggingface_hub
        from huggingface_hub.utils import disable_progress_bars  # type: ignore[attr-defined]
    except ImportError:
        raise MissingExtraError("huggingface_hub", "publish") from None
    disable_progress_bars()
    hub = huggingface_hub.HfApi(library_name="counterfoil")
    created = False
    try:
        page = hub.create_repo(repository, repo_type="dataset", private=private or None, exist_ok=update)
        created = True
        commit = hub.upload_folder(
            repo_id=repository,
            folder_path=folder,
            repo_type="dataset",
            commit_message=message or "Publish",
            delete_patterns="*" if update else None,
        )
    # The library passes on whatever its own checks, its network library and its storage raise.
    except Exception as error:
        status = getattr(getattr(error, "response", None), "status_code", None)
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        # What was made stays there, empty.
        left = "; the repository was made and is empty: go on with --overwrite"
        what, hint = _REFUSALS.get(status or 0, ("the hub did not take the data set", "try again"))
        raise InputError(
            what,
            where=f"hub:{repository}",
            given=None if status in _REFUSALS else f"{type(error).__name__}: {reason}",
            hint=hint + (left if created and not update else ""),
        ) from None
    return Upload(str(page), str(commit.oid))
