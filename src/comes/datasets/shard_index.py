"""What one pass over shards found, kept in the cache: it is read again while no file changes."""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from comes.datasets.reading import Reading
from comes.datasets.shard_blocks import Block, as_numbers, cut_file
from comes.datasets.shard_files import ShardFile
from comes.files import cache_folder, replacing_file

VERSION = 1  # of the form of what is kept


@dataclass(frozen=True)
class ShardIndex:
    """Where the blocks of shards are, and what is not written in any of them."""

    blocks: tuple[Block, ...]
    label_names: list[str] | None = None
    n_features: int | None = None


Survey = Callable[[tuple[Block, ...]], tuple[list[str] | None, int | None]]


def find_index(
    files: Sequence[ShardFile], most_rows: int, reading: Reading, survey: Survey
) -> ShardIndex:
    """Return the index of shards, from the cache or from one pass over them.

    The survey gives the names of labels and the number of features, where they must be gathered.
    """
    key = _hash([VERSION, most_rows, repr(reading), [repr(file) for file in files]])
    path = cache_folder() / "shards" / f"{key}.json"
    kept = _read(path)
    if kept is not None:
        return kept
    blocks = tuple(
        block for number, file in enumerate(files) for block in cut_file(file, number, most_rows)
    )
    found = ShardIndex(blocks, *survey(blocks))
    content = {
        "blocks": [as_numbers(block) for block in blocks],
        "label_names": found.label_names,
        "n_features": found.n_features,
    }
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing_file(path) as temporary:
            whole = {"checksum": _hash(content), "content": content}
            temporary.write_text(json.dumps(whole), encoding="utf-8")
    except OSError:  # a cache that cannot be written costs another pass, no more
        pass
    return found


def _hash(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _read(path: Any) -> ShardIndex | None:
    """Return what the cache holds, None if there is nothing, or it is damaged."""
    try:
        whole = json.loads(path.read_text(encoding="utf-8"))
        content = whole["content"]
        if whole["checksum"] != _hash(content):
            return None
        blocks = tuple(Block(*numbers) for numbers in content["blocks"])
        return ShardIndex(blocks, content["label_names"], content["n_features"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
