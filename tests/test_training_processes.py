"""Two processes that train together must find the weights of one that trains alone."""

import os
import socket
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from scipy import sparse
from torch import Tensor, nn

from comes.answers import State
from comes.errors import ComesError
from comes.models import Ensemble, OfEachNetwork, mlp
from comes.risks import HammingRisk, LikelihoodRisk, RankingRisk
from comes.training import (
    BlockOrder,
    Checkpoint,
    LabelChunks,
    PixelRows,
    Risk,
    SaidRows,
    StreamedRows,
    TrainOptions,
    Validation,
    count_processes,
    join_processes,
    leave_processes,
    make_optimizer,
    of_all_processes,
    of_each_process,
    predict_scores,
    process_number,
    processes,
    seeded,
    steps,
    train,
)
from drawn_problems import annotate, prior_of, problem
from pictures import pictures
from two_processes import TwoProcesses

CPU = torch.device("cpu")
X, _ = problem(seed=5, n=43, q=3)
_, RELEVANT = problem(seed=6, n=43)
CANDIDATES = annotate(RELEVANT, 0.5, seed=7)
PRIOR = prior_of(RELEVANT)
STATES = torch.randint(0, 4, (43, 4), generator=torch.Generator().manual_seed(8)).to(torch.int8)
LEANINGS = torch.linspace(-1, 1, 43 * 4).reshape(43, 4)
ADAM = make_optimizer("adam", learning_rate=0.05)
SGD = make_optimizer("sgd", learning_rate=0.1)


def risk_of(name: str, dtype: torch.dtype = torch.float64) -> nn.Module:
    if name == "hamming":
        return HammingRisk(PRIOR.to(dtype))
    if name.startswith("likelihood"):
        yes_rate = None if name == "likelihood of candidates" else PRIOR.to(dtype) / 2
        return LikelihoodRisk(PRIOR.to(dtype), yes_rate, class_prior=PRIOR.to(dtype))
    return RankingRisk(PRIOR.to(dtype), flood_level=2.4)  # in the range of the risks of batches


def network(dtype: torch.dtype = torch.float64, seed: int = 0, dropout: float = 0.0) -> nn.Module:
    with seeded(seed, CPU):
        layers = [nn.Linear(3, 8), nn.ReLU(), nn.Dropout(dropout), nn.Linear(8, 4)]
        return nn.Sequential(*layers).to(dtype)


def weights(model: nn.Module) -> Tensor:
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def trained(
    name: str,
    dtype: torch.dtype = torch.float64,
    answers: Tensor = CANDIDATES,
    **options: Any,
) -> dict[str, Any]:
    """Train in batches of 8 and 9 rows, which two processes share as 4 and 4 or 5 and 4."""
    model, risk = network(dtype), risk_of(name, dtype)
    settings = TrainOptions(SGD, epochs=4, batch_size=9, seed=3)
    is_shared = dist.is_initialized()
    history = train(
        model, X.to(dtype), answers, risk, replace(settings, **options), is_shared=is_shared
    )
    return {"weights": weights(model), "risk": history.risk}


def trained_on(
    rows: Any = None,
    candidates: Any = CANDIDATES,
    make: Callable[[], nn.Module] = network,
    risk: Any = None,
    weight: Tensor | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Train on other rows, or another network."""
    with seeded(2, CPU):
        model = make().double()
    history = train(
        model,
        X if rows is None else rows,
        candidates,
        risk or risk_of("hamming"),
        TrainOptions(SGD, epochs=4, batch_size=9, seed=3, **options),
        sample_weight=weight,
        is_shared=dist.is_initialized(),
    )
    return {"weights": weights(model), "risk": history.risk}


def weighted(scores: Tensor, candidates: Tensor, weight: Tensor) -> Tensor:
    mean = (weight[:, None] * torch.where(candidates, -scores, scores).exp()).mean(dim=0)
    return (mean - 0.3).abs().sum()  # not a sum over rows


class Opaque:
    """Candidates whose selected rows only a risk understands."""

    device = CPU

    def __len__(self) -> int:
        return len(CANDIDATES)

    def index_select(self, dim: int, index: Tensor) -> tuple[str, Tensor]:
        return "selected", CANDIDATES.index_select(dim, index)


def streamed() -> StreamedRows:
    starts = BLOCKS.starts
    return StreamedRows(
        BLOCKS.sizes,
        lambda b: (X[starts[b] :][: SIZES[b]].numpy(), CANDIDATES[starts[b] :][: SIZES[b]]),
        CPU,
    )


def on_pixels(augment: Any, **options: Any) -> dict[str, Any]:
    def make() -> nn.Module:
        return nn.Sequential(ToDouble(), nn.Linear(3 * 6 * 6, 4))

    rows = PixelRows(list(pictures(43)[0]), 6, CPU, augment)
    candidates = CANDIDATES.double() if "mixes_pairs" in options else CANDIDATES
    risk = (lambda scores, targets: (scores - targets).square().mean()) if options else None
    return trained_on(rows, candidates, make, risk, **options)


class ToDouble(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.flatten(1).double() / 255


def in_chunks(name: str, silence: State, dropout: float = 0.5) -> dict[str, Any]:
    """Train in chunks of a label, of which a process has every second."""
    said = SaidRows(sparse.csr_array((STATES * (STATES != State.MAYBE)).numpy()), silence, CPU)
    many = name == "networks at once"
    risk: Any = risk_of("hamming" if many else name)
    return trained_on(
        candidates=said,
        make=lambda: Ensemble(3, 4, 8, dropout=dropout) if many else mlp(3, 4, 8, dropout=dropout),
        risk=LabelChunks(OfEachNetwork(risk) if many else risk, 4, chunk=1),
    )


SIZES = (10, 3, 12, 7, 11)
BLOCKS = BlockOrder(SIZES, 15)

TRAININGS: dict[str, Callable[[], dict[str, Any]]] = {
    "hamming": lambda: trained("hamming"),
    "ranking": lambda: trained("ranking"),
    "hamming in float32": lambda: trained("hamming", torch.float32),
    "ranking in float32": lambda: trained("ranking", torch.float32),
    "hamming in parts": lambda: trained("hamming", part_size=3),
    "ranking in parts": lambda: trained("ranking", part_size=3),
    "adam, in one batch": lambda: trained("hamming", optimizer=ADAM, batch_size=99),
    "scaled": lambda: trained("hamming", risk_scale=4.0, cosine=False),
    # Of batches of 9 rows one process has 5, in two parts, and the other 4, at once.
    "in parts in one process only": lambda: trained("hamming", part_size=4),
    "hamming on states": lambda: trained("hamming", answers=STATES),
    "likelihood": lambda: trained("likelihood of candidates"),
    "likelihood of states": lambda: trained("likelihood", answers=STATES),
    "likelihood of states, in parts": lambda: trained("likelihood", answers=STATES, part_size=3),
    "likelihood of leanings": lambda: trained("likelihood", answers=LEANINGS),
    "our dropout": lambda: trained_on(make=lambda: mlp(3, 4, 8, dropout=0.5)),
    "networks at once": lambda: trained_on(
        make=lambda: Ensemble(3, 4, 8, dropout=0.5), risk=OfEachNetwork(risk_of("hamming"))
    ),
    "weights of rows": lambda: trained_on(risk=weighted, weight=torch.linspace(0, 2, 43).double()),
    "opaque candidates": lambda: trained_on(
        candidates=Opaque(), risk=lambda scores, seen: risk_of("hamming")(scores, seen[1])
    ),
    "in the order of blocks": lambda: trained_on(order=BLOCKS),
    "a stream": lambda: trained_on(
        streamed(), None, lambda: nn.Sequential(ToDouble(), network()), order=BLOCKS
    ),
    "hamming in chunks of labels": lambda: in_chunks("hamming", State.MAYBE),
    "likelihood in chunks of labels": lambda: in_chunks("likelihood", State.NOT_ASKED),
    "asked labels alone": lambda: in_chunks("hamming", State.NOT_ASKED),
    "networks in chunks of labels": lambda: in_chunks("networks at once", State.MAYBE),
    "mirrored pictures": lambda: on_pixels("flip"),
    "cut pictures": lambda: on_pixels("crop"),
}


def naively_trained(name: str) -> dict[str, Any]:
    """Train on the risk of each process, as data parallelism without thought does."""

    def of_own_rows(risk: Risk, n: int) -> Risk:
        return lambda scores, seen: risk(scores, processes.take_share(seen))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(steps, "of_whole_batch", of_own_rows)
        return trained(name)


def refused() -> str:
    with pytest.raises(ComesError) as raised:
        trained("hamming", batch_size=1)
    return str(raised.value)


class Noise(nn.Module):
    """Adds random numbers to its input, and keeps them."""

    def forward(self, x: Tensor) -> Tensor:
        self.last = torch.rand(x.shape)
        return x + self.last


def noise_of_one_batch() -> Tensor:
    noise = Noise()
    model = nn.Sequential(noise, network())
    options = TrainOptions(SGD, epochs=1, batch_size=40)
    train(model, X[:40], CANDIDATES[:40], risk_of("hamming"), options, is_shared=True)
    return noise.last


class StoppedError(Exception):
    pass


def resumable(folder: Path, stops_after: int = 99, seed: int = 0) -> dict[str, Any]:
    """Train with dropout and a checkpoint; raise after so many epochs."""
    model = network(seed=seed, dropout=0.5)
    calls = 0

    def score() -> float:
        nonlocal calls
        calls += 1
        if calls > stops_after:
            raise StoppedError
        return risk_of("hamming")(predict_scores(model, X).double(), CANDIDATES).item()  # type: ignore[no-any-return]

    history = train(
        model,
        X,
        CANDIDATES,
        risk_of("hamming"),
        TrainOptions(ADAM, epochs=4, batch_size=9),
        validation=Validation(score),
        checkpoint=Checkpoint(folder / "training.pt", "the same"),
        is_shared=dist.is_initialized(),
    )
    found = {"risk": history.risk, "validation": history.validation, "best": history.best_epoch}
    return found | {"weights": weights(model), "calls": calls}


def stopped_and_resumed(folder: Path) -> dict[str, Any]:
    (folder / "kept").mkdir(exist_ok=True)
    through = resumable(folder / "kept")
    dist.barrier()
    (folder / "kept" / "training.pt").unlink(missing_ok=True)
    dist.barrier()
    with pytest.raises(StoppedError):
        resumable(folder / "kept", stops_after=2)
    dist.barrier()
    files = os.listdir(folder / "kept")
    state = (folder / "kept" / "training.pt").read_bytes()
    dist.barrier()
    resumed = resumable(folder / "kept", seed=1)
    dist.barrier()
    left = os.listdir(folder / "kept")
    return {"through": through, "resumed": resumed, "files": files, "left": left, "kept": state}


def my_rows(rank: int) -> slice:
    return slice(0, 13) if rank == 0 else slice(13, 30)


def gradient_of_30(name: str, rank: int) -> Tensor:
    """Return what two processes with 13 and 17 rows find, in a loop with accelerate."""
    from accelerate import Accelerator  # type: ignore[import-untyped]

    accelerator = Accelerator(cpu=True)
    assert accelerator.num_processes == 2
    model = network()
    prepared, _ = accelerator.prepare(model, SGD(model.parameters()))
    risk = of_all_processes(risk_of(name))
    rows = my_rows(rank)
    accelerator.backward(risk(prepared(X[rows]), CANDIDATES[rows]))
    return gradients(model)


def gradients(model: nn.Module) -> Tensor:
    return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])


def squares_of_half_precision(rank: int) -> Tensor:
    scores = network()(X)[my_rows(rank)].detach().bfloat16()
    risk = of_all_processes(lambda scores, candidates: scores.square().sum())
    return risk(scores, CANDIDATES[my_rows(rank)])


def one_process(rank: int, path: str, port: int) -> None:
    """Do everything that needs two processes, and write what was found."""
    os.environ |= {"WORLD_SIZE": "2", "RANK": str(rank), "LOCAL_RANK": str(rank)}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    folder = Path(path)
    assert join_processes(CPU) == CPU  # they have met
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found: dict[str, Any] = {name: run() for name, run in TRAININGS.items()}
    found["warnings"] = sorted({str(warning.message) for warning in caught})
    found["naive"] = {name: naively_trained(name) for name in ("hamming", "ranking")}
    found["refused"] = refused()
    found["noise"] = noise_of_one_batch()
    found["mixed"] = on_pixels("mixup", mixes_pairs=True)
    found["checkpoint"] = stopped_and_resumed(folder)
    found["gradient"] = {name: gradient_of_30(name, rank) for name in ("hamming", "ranking")}
    found["half"] = squares_of_half_precision(rank)
    found["numbers"] = of_each_process((process_number(), count_processes()))
    leave_processes()
    found["alone"] = process_number(), count_processes()
    join_processes(CPU)
    found["joined again"] = of_each_process(process_number())
    leave_processes()
    torch.save(found, folder / f"{rank}.pt")


@pytest.fixture(scope="module")
def both(
    tmp_path_factory: pytest.TempPathFactory, two_processes: TwoProcesses
) -> list[dict[str, Any]]:
    """What each process found."""
    folder = tmp_path_factory.mktemp("processes")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    two_processes.run(one_process, str(folder), port)
    return [torch.load(folder / f"{rank}.pt") for rank in range(2)]


@pytest.mark.parametrize("name", TRAININGS)
def test_two_processes_find_the_weights_of_one(name: str, both: list[dict[str, Any]]) -> None:
    alone = TRAININGS[name]()
    assert max(alone["risk"]) - min(alone["risk"]) > 1e-3
    for found in both:
        torch.testing.assert_close(found[name]["weights"], alone["weights"], rtol=0, atol=1e-6)
        assert found[name]["risk"] == pytest.approx(alone["risk"], abs=1e-6)
    assert torch.equal(both[0][name]["weights"], both[1][name]["weights"])


def test_two_processes_train_without_a_warning(both: list[dict[str, Any]]) -> None:
    for found in both:
        assert found["warnings"] == []


def test_the_flood_level_acts_in_some_batches() -> None:
    seen: list[bool] = []
    plain = RankingRisk(PRIOR)

    def risk(scores: Tensor, candidates: Tensor) -> Tensor:
        seen.append(plain(scores, candidates).item() < 2.4)
        result: Tensor = risk_of("ranking")(scores, candidates)
        return result

    train(network(), X, CANDIDATES, risk, TrainOptions(SGD, epochs=4, batch_size=9, seed=3))
    assert set(seen) == {True, False}


@pytest.mark.parametrize("name", ["hamming", "ranking"])
def test_the_mean_of_the_risks_of_processes_leads_elsewhere(
    name: str, both: list[dict[str, Any]]
) -> None:
    alone = trained(name)["weights"]
    for found in both:
        assert (found["naive"][name]["weights"] - alone).abs().max() > 1e-3


@pytest.mark.parametrize("name", ["hamming", "ranking"])
def test_a_loop_with_accelerate_has_the_gradient_of_one_process(
    name: str, both: list[dict[str, Any]]
) -> None:
    model = network()
    risk_of(name)(model(X[:30]), CANDIDATES[:30]).backward()
    for found in both:
        torch.testing.assert_close(found["gradient"][name], gradients(model), rtol=0, atol=1e-6)


def test_scores_in_half_precision_meet_in_full_precision(both: list[dict[str, Any]]) -> None:
    scores = network()(X)[:30].detach().bfloat16().float()
    for found in both:
        torch.testing.assert_close(found["half"], scores.square().sum())


def test_a_batch_that_cannot_be_shared_is_refused(both: list[dict[str, Any]]) -> None:
    for found in both:
        assert "a batch of 1 rows cannot be shared by 2 processes" in found["refused"]


def test_processes_draw_different_random_numbers(both: list[dict[str, Any]]) -> None:
    noises = [found["noise"] for found in both]
    assert noises[0].shape == noises[1].shape == (20, 3)
    assert not torch.equal(noises[0], noises[1])


def test_processes_that_mix_pairs_agree(both: list[dict[str, Any]]) -> None:
    assert torch.equal(both[0]["mixed"]["weights"], both[1]["mixed"]["weights"])
    assert both[0]["mixed"]["risk"] == both[1]["mixed"]["risk"]
    assert both[0]["mixed"]["risk"][-1] < both[0]["mixed"]["risk"][0]


def test_one_process_goes_on_from_what_two_have_kept(
    both: list[dict[str, Any]], tmp_path: Path
) -> None:
    (tmp_path / "training.pt").write_bytes(both[0]["checkpoint"]["kept"])
    found = resumable(tmp_path, seed=1)
    assert found["calls"] == 2  # of the validation, which two have called twice
    assert found["risk"][:2] == both[0]["checkpoint"]["through"]["risk"][:2]
    assert len(found["risk"]) == 4


def test_a_stopped_training_of_two_processes_goes_on_to_the_same_weights(
    both: list[dict[str, Any]],
) -> None:
    for found in both:
        through, resumed = found["checkpoint"]["through"], found["checkpoint"]["resumed"]
        assert torch.equal(through.pop("weights"), resumed.pop("weights"))
        assert (through.pop("calls"), resumed.pop("calls")) == (4, 2)
        assert through == resumed
        assert len(through["risk"]) == len(through["validation"]) == 4


def test_two_processes_keep_one_file(both: list[dict[str, Any]]) -> None:
    for found in both:
        assert found["checkpoint"]["files"] == ["training.pt"]
        assert found["checkpoint"]["left"] == ["training.pt"]


def test_processes_know_their_number_and_can_leave_and_join(both: list[dict[str, Any]]) -> None:
    for found in both:
        assert found["numbers"] == [(0, 2), (1, 2)]
        assert found["alone"] == (0, 1)
        assert found["joined again"] == [0, 1]


def test_one_process_alone_joins_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    assert join_processes(CPU) == CPU
    assert (process_number(), count_processes()) == (0, 1)
    assert of_each_process("me") == ["me"]
    risk: Risk = of_all_processes(lambda scores, candidates: scores.sum())
    assert risk(torch.ones(2, 3), CANDIDATES) == 6
    leave_processes()
