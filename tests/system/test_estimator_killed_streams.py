"""A fit on shards that is killed goes on where its state was kept."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from comes import CandidateClassifier

N, PARTS = 120, 4
NAMES = ["sea", "sky", "sun"]
# The child may be told to wait for ever once it has read so many blocks.
CHILD = """
    import sys, threading
    from pathlib import Path
    from comes import CandidateClassifier
    from comes.datasets import ShardedDataset, open_shards

    folder, state, stops_at = sys.argv[1], sys.argv[2], int(sys.argv[3])
    shards, calls = open_shards(folder, labels=("sea", "sky", "sun")), []

    load = ShardedDataset.load

    def counted(shards, block):
        calls.append(block)
        if len(calls) == stops_at:
            Path(state + ".waits").touch()
            threading.Event().wait()
        return load(shards, block)

    clf = CandidateClassifier("likelihood", epochs=4, hidden=8, device="cpu", random_state=0,
        verbose=-1, batch_size=16, class_prior=[0.4, 0.4, 0.4])
    ShardedDataset.load = counted
    clf.fit_stream(shards, buffer_rows=120, checkpoint=state, checkpoint_every=0.0)
    clf.save(state + ".model")
    print(len(calls))
"""


def write_shards(folder: Path) -> None:
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(5, 3))
    folder.mkdir()
    for part in range(PARTS):
        X = rng.normal(size=(N, 5)).astype(np.float32)
        excluded = (X @ weights < 0.3) & (rng.random((N, 3)) < 0.5)
        table = pd.DataFrame(X, columns=list("abcde"))
        table = table.assign(**{name: 1 - excluded[:, k] for k, name in enumerate(NAMES)})
        table.to_parquet(folder / f"part-{part}.parquet", index=False)


def test_a_kill_in_the_middle_of_an_epoch_changes_nothing(tmp_path: Path) -> None:
    write_shards(tmp_path / "shards")
    script = tmp_path / "child.py"
    script.write_text(textwrap.dedent(CHILD))

    def start(name: str, stops_at: int = 0) -> Any:
        arguments = [sys.executable, script, tmp_path / "shards", tmp_path / name, stops_at]
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        return subprocess.Popen(
            [*map(str, arguments)], env=environment, stdout=subprocess.PIPE, text=True
        )

    through = start("through")
    n_calls = int(through.communicate()[0])
    assert through.returncode == 0
    child = start("killed", n_calls - 2 * PARTS)  # some blocks before the end
    try:
        deadline = time.monotonic() + 600
        state = tmp_path / "killed"
        while not (state.exists() and (tmp_path / "killed.waits").exists()):
            assert child.poll() is None, "it ended before it was killed"
            assert time.monotonic() < deadline
            time.sleep(0.05)
    finally:
        child.send_signal(signal.SIGKILL)
        child.communicate()
    assert child.returncode == -signal.SIGKILL
    assert torch.load(tmp_path / "killed", weights_only=True)  # somewhere in the training
    again = start("killed")
    assert int(again.communicate()[0]) < n_calls, "it started anew"
    one, other = (
        CandidateClassifier.load(tmp_path / f"{name}.model").module_.state_dict()
        for name in ("through", "killed")
    )
    assert all(torch.equal(one[name], other[name]) for name in one)
