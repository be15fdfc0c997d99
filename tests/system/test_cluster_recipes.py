"""The recipes of docs/guide/clusters.md are true: options exist, shards are all of the tasks."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from comes.cli import app

TEXT = (Path(__file__).parents[2] / "docs" / "guide" / "clusters.md").read_text(encoding="utf-8")
COMMANDS = get_command(app).commands  # type: ignore[attr-defined]
# Stands in for a command: prints its name and arguments, a line each, and a bar.
SHOW = r"""show() { printf '%s\n' "$@" "|"; }
comes() { show comes "$@"; }; torchrun() { show torchrun "$@"; }
dask() { :; }; ray() { :; }; srun() { "$@"; }; scontrol() { echo first; echo second; }
"""


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)


def run(script: str, **variables: str) -> list[list[str]]:
    """Return the commands that a script calls, as lists of words."""
    shown = subprocess.run(
        ["bash", "-euc", SHOW + script], env=variables, capture_output=True, text=True, check=True
    ).stdout
    return [call.split("\n")[:-1] for call in shown.replace("\n|\n", "\n\0").split("\0")[:-1]]


def read_options(call: list[str]) -> dict[str, Any]:
    """Return the options of a call of comes; raise if there is no such option."""
    name, *words = call[call.index("comes") + 1 :]
    found: dict[str, Any] = COMMANDS[name].make_context(name, words).params
    return found


def test_commands_have_these_options() -> None:
    calls = [call for script in blocks("sh") for call in run(script)]
    assert len(calls) == 2
    assert {read_options(call)["backend"] for call in calls} == {"dask", "ray"}


def test_an_array_of_slurm_runs_every_shard() -> None:
    (script,) = (s for s in blocks("slurm") if "comes bench" in s)
    sizes = re.search(r"--array=(\d+)-(\d+)", script)
    assert sizes is not None
    first, last = int(sizes[1]), int(sizes[2])
    shards = []
    for task in range(first, last + 1):
        slurm = {"SLURM_ARRAY_TASK_ID": str(task), "SLURM_ARRAY_TASK_COUNT": str(last - first + 1)}
        (call,) = run(script, SLURM_CPUS_PER_TASK="4", **slurm)
        shards.append(read_options(call)["shard"])
    assert shards == [f"{k}/{len(shards)}" for k in range(1, len(shards) + 1)]


@pytest.mark.needs("dask")  # which brings yaml
def test_a_job_of_kubernetes_runs_every_shard() -> None:
    import yaml  # type: ignore[import-untyped]

    (block,) = blocks("yaml")
    spec = yaml.safe_load(block)["spec"]
    assert spec["completionMode"] == "Indexed"
    pod = spec["template"]["spec"]
    (container,) = pod["containers"]
    assert container["command"] == ["sh", "-c"]
    (script,) = container["args"]
    n = spec["completions"]
    calls = [run(script, JOB_COMPLETION_INDEX=str(index)) for index in range(n)]
    assert [read_options(c)["shard"] for (c,) in calls] == [f"{k}/{n}" for k in range(1, n + 1)]
    mounted = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert set(mounted) == {volume["name"] for volume in pod["volumes"]}
    assert str(read_options(calls[0][0])["output"]).startswith(mounted["shared"])


def test_torchrun_has_these_options() -> None:
    from torch.distributed.run import get_args_parser

    (script,) = (s for s in blocks("slurm") if "torchrun" in s)
    slurm = {"SLURM_JOB_NODELIST": "gpu[1-2]", "SLURM_JOB_NUM_NODES": "2", "SLURM_JOB_ID": "7"}
    (call,) = run(script, **slurm)
    found = get_args_parser().parse_args(call[1:])
    assert (found.nnodes, found.nproc_per_node, found.rdzv_endpoint) == ("2", "4", "first:29500")
    assert found.module and found.training_script == "comes"
    assert read_options(call)["labels"] == "has_*"
