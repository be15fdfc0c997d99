"""What was measured of interruptions: inputs untouched, outputs whole or absent, no orphans."""

import json
from pathlib import Path

STORED = Path(__file__).parents[1] / "benchmarks" / "results" / "interruptions.json"


def test_interruptions_lost_nothing() -> None:
    rows = json.loads(STORED.read_text(encoding="utf-8"))["rows"]
    assert {row["interruption"] for row in rows} == {"kill", "term", "disk"}
    for row in rows:
        assert row["moments"] == row["inputs_untouched"] == row["outputs_whole_or_absent"] > 0
        assert row["with_orphans"] == row["tracebacks"] == 0
        assert row["interruption"] == "kill" or row["with_temporary_files"] == 0
