"""Sets on the Hugging Face Hub: pushed as dataset folders, pulled as sets. Needs the extra `hf`.

Who may push, where the hub is and how long to wait for it are settings of huggingface_hub: `hf auth login` or HF_TOKEN,
HF_ENDPOINT, HF_HUB_ETAG_TIMEOUT and HF_HUB_DOWNLOAD_TIMEOUT.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from condense_once.condensed.bundled import as_set
from condense_once.condensed.file import SetFile
from condense_once.condensed.huggingface import SET_FILE, write_dataset_folder
from condense_once.condensed.set import CondensedSet
from condense_once.errors import BadFile, BadOption, CondenseOnceError, InaccessibleFile, MissingExtra
from condense_once.text import first_line


def push_to_hub(
    data: CondensedSet | str | Path, repository: str, *, private: bool = False, revision: str | None = None
) -> str:
    """Upload a set in one commit, as the dataset folder of the format `huggingface`; returns the address of the commit.

    `repository` is OWNER/NAME; it is created, public unless `private`, if it does not exist.
    """
    hub, data = _hub("Pushing to the Hugging Face Hub"), as_set(data)
    with TemporaryDirectory() as scratch, _errors_of_hub(repository):
        folder = Path(scratch, "dataset")
        write_dataset_folder(data, folder)
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        api = hub.HfApi(library_name="condense-once")
        api.create_repo(repository, repo_type="dataset", private=private, exist_ok=True)
        commit = api.create_commit(
            repository,
            [hub.CommitOperationAdd(path.relative_to(folder).as_posix(), path) for path in files],
            commit_message=f"{data.name}, a condensed dataset",
            repo_type="dataset",
            revision=revision,
        )
        return str(commit.commit_url)


def pull_from_hub(repository: str, *, revision: str | None = None) -> CondensedSet:
    """Download the set of a dataset that `push_to_hub` uploaded, exactly as it was; its checksums are verified.

    It is kept in the cache of huggingface_hub, and downloaded again only if it has changed.
    """
    hub = _hub("Pulling from the Hugging Face Hub")
    with _errors_of_hub(repository):
        path = hub.hf_hub_download(repository, SET_FILE, repo_type="dataset", revision=revision)
    return SetFile.open(Path(path)).read()


def _hub(what: str) -> Any:
    try:
        import huggingface_hub
    except ImportError:
        raise MissingExtra(what, "hf") from None
    return huggingface_hub


@contextmanager
def _errors_of_hub(repository: str) -> Iterator[None]:
    """Turn what the hub and the way there answer into one sentence each."""
    from huggingface_hub import errors

    try:
        yield
    except CondenseOnceError:
        raise
    except errors.HFValidationError as error:
        raise BadOption(f"A `repository` is OWNER/NAME, not {repository!r}; check its name.") from error
    except errors.EntryNotFoundError as error:
        raise BadFile(
            f"The dataset {repository} has no {SET_FILE}, or the hub cannot be reached; if it holds images only, download it"
            " and import it."
        ) from error
    except errors.RepositoryNotFoundError as error:
        raise BadOption(
            f"There is no dataset {repository} that you may read or write; check its name, or log in with hf auth login."
        ) from error
    except Exception as error:  # of HTTP, sockets, tokens and the cache, in classes that change with its versions
        raise InaccessibleFile(f"The hub did not serve {repository}: {first_line(error)[:200]}; try again.") from error
