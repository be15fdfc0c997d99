"""What needs no torch does not import it: completion in a real shell, and light jobs."""

import os
import subprocess
import sys
from pathlib import Path


def test_bash_completes_commands_options_and_values(tmp_path: Path) -> None:
    """The script that bash gets is sourced, and asked as TAB asks it."""
    comes = tmp_path / "comes"
    comes.write_text(f'#!/bin/sh\nexec "{sys.executable}" -X importtime -m comes "$@"\n')
    comes.chmod(0o755)
    script = """
        source <(_COMES_COMPLETE=source_bash comes 2> /dev/null)
        for line in 'comes pred' 'comes fit a.csv --early' 'comes fit a.csv --method ccm'; do
            COMP_WORDS=($line); COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
            $(complete -p comes | sed 's/.*-F \\([^ ]*\\) .*/\\1/') comes
            echo "${COMPREPLY[*]}"
        done
    """
    paths = {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-c", script], env={**os.environ, **paths}, capture_output=True, text=True
    )
    assert done.stdout.split() == ["predict", "--early-stopping", "ccmn"], done.stderr
    imported = [line.rpartition("|")[2].strip() for line in done.stderr.splitlines()]
    assert "comes.cli" in imported and "torch" not in imported


def test_jobs_that_need_no_torch_do_not_import_it() -> None:
    light = "convert_dataset, report_results, split_data"
    program = f"import sys; from comes.workflows import {light}; print('torch' in sys.modules)"
    command = [sys.executable, "-c", program]
    assert subprocess.run(command, capture_output=True, text=True).stdout.strip() == "False"
