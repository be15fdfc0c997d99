"""Images whose files are held in memory as they were stored, such as a block of a tar file."""

from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from comes.datasets.images import Images


class StoredImages(Images):
    """A row of images that are held as they were stored, and decoded when they are asked for.

    Parameters
    ----------
    names : sequence of str
    contents : sequence of bytes
        The files, one for each name.

    Examples
    --------
    >>> import io
    >>> from PIL import Image
    >>> file = io.BytesIO()
    >>> Image.new("RGB", (5, 4), "red").save(file, "png")
    >>> StoredImages(["red.png"], [file.getvalue()])[0].shape
    (4, 5, 3)
    """

    def __init__(self, names: Sequence[str], contents: Sequence[bytes]):
        super().__init__(Path(), names)
        self.contents = list(contents)

    def __getitem__(self, rows: Any) -> Any:
        if isinstance(rows, (int, np.integer)):
            return self.read_reduced(int(rows), None)
        index = np.arange(len(self))[rows if isinstance(rows, slice) else np.asarray(rows)]
        return StoredImages([self.names[k] for k in index], [self.contents[k] for k in index])

    def read_bytes(self, row: int) -> bytes:
        """Return the file as it is stored."""
        return self.contents[row]

    @staticmethod
    def joined(parts: Sequence[Images]) -> Images:
        """Return the images of several, one after the other."""
        contents = [part.read_bytes(row) for part in parts for row in range(len(part))]
        return StoredImages([name for part in parts for name in part.names], contents)

    def states(self) -> Iterator[bytes]:
        """Give what tells each image from a changed one."""
        for name, content in zip(self.names, self.contents, strict=True):
            yield repr((name, sha256(content).hexdigest())).encode()
