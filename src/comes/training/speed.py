"""What makes the steps of small networks fast: one thread, memory that stays, and CUDA graphs."""

import ctypes
import math
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from threading import Lock

import torch
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]
from torch import Tensor, nn

from comes.models import InputLayer

# From glibc's malloc.h.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_MMAP_MAX = -1, -3, -4
LARGEST_MMAP_THRESHOLD, USUAL_MMAPS = 32 * 2**20, 65536
KEPT = 2**30

WORK_PER_THREAD = 1.5e9  # multiplications of a step: benchmarks/threads.py
WARM_UP = 3  # steps of each shape that are taken before one is recorded


@contextmanager
def few_threads(model: nn.Module, X: object, batch_size: int) -> Iterator[None]:
    """Compute the steps of a network of comes with as many threads as their work is worth.

    On cores that are free, two threads take little more than half as long as one. Where other
    processes compute, threads of a small step wait for each other, and may take many times as long;
    those of a large one do not (docs/develop/speed.md). A network of the user may do anything with
    a row, and sparse rows are products of vectors: the latter get one thread, the former all.
    """
    work = math.inf
    if any(isinstance(module, InputLayer) for module in model.modules()):
        n_weights = sum(weight.numel() for weight in model.parameters())
        work = 3 * n_weights * batch_size if isinstance(X, Tensor) else 0  # forward and backward
    with threads_for(work):
        yield


@contextmanager
def threads_for(work: float) -> Iterator[None]:
    """Compute with as many threads of torch as so many multiplications at a time are worth.

    Where that is one, the products and solvers of numpy and scipy have one, too: on busy cores the
    second thread of OpenBLAS makes them take more than ten times the CPU seconds.
    """
    before = torch.get_num_threads()
    wanted = int(max(1, min(before, work // WORK_PER_THREAD)))
    torch.set_num_threads(wanted)
    try:
        with _one_blas_thread() if wanted == 1 else nullcontext():
            yield
    finally:
        torch.set_num_threads(before)


_blas_lock = Lock()
_blas_limits: list[threadpool_limits] = []  # of the blocks that are open: BLAS's threads are global


@contextmanager
def _one_blas_thread() -> Iterator[None]:
    """Limit BLAS inside the block; of blocks in several threads the last one restores it."""
    with _blas_lock:
        limit = _blas_limits[0] if _blas_limits else threadpool_limits(1, user_api="blas")
        _blas_limits.append(limit)
    try:
        yield
    finally:
        with _blas_lock:
            _blas_limits.pop()
            if not _blas_limits:
                limit.restore_original_limits()


@contextmanager
def kept_memory() -> Iterator[None]:
    """Keep up to 1 GiB of freed memory in the process inside the block.

    Every step frees arrays of megabytes and allocates the same again. By default glibc returns them
    to the system, which clears every page anew; this takes much of the time of small networks.
    At the end the memory is returned, and glibc has the thresholds that its own adjustment to large
    arrays ends at. With another C library this does nothing.
    """
    try:
        libc = ctypes.CDLL(None)
        mallopt, malloc_trim = libc.mallopt, libc.malloc_trim
    except (OSError, TypeError, AttributeError):  # not glibc
        yield
        return
    mallopt(M_MMAP_THRESHOLD, LARGEST_MMAP_THRESHOLD)
    mallopt(M_TRIM_THRESHOLD, KEPT)
    mallopt(M_MMAP_MAX, 0)  # larger arrays, too, lie where they can be kept
    try:
        yield
    finally:
        mallopt(M_MMAP_MAX, USUAL_MMAPS)
        mallopt(M_TRIM_THRESHOLD, 2 * LARGEST_MMAP_THRESHOLD)
        malloc_trim(0)


@contextmanager
def fastest_convolutions() -> Iterator[None]:
    """Let cuDNN measure its algorithms on the first batch, and use the fastest in the block."""
    before = torch.backends.cudnn.benchmark
    torch.backends.cudnn.benchmark = True
    try:
        yield
    finally:
        torch.backends.cudnn.benchmark = before


class GraphedStep:
    """A training step as a CUDA graph: recorded once, then started as a whole.

    A step of a small network is some hundred kernels of a few microseconds each, and starting them
    one by one takes longer than running them. The step takes the rows of a batch, updates the
    weights and returns the risk; it must not read a number from the device. Learning rates are
    moved to the device, so that they can change between steps.
    """

    def __init__(
        self,
        step: Callable[[Tensor], Tensor],
        optimizer: torch.optim.Optimizer,
        device: torch.device,
    ) -> None:
        self.step = step
        self.n_taken: Counter[torch.Size] = Counter()  # by shape
        self.recorded: dict[torch.Size, tuple[torch.cuda.CUDAGraph, Tensor, Tensor]] = {}
        self.stream = torch.cuda.Stream(device)
        self.memory = torch.cuda.graph_pool_handle()  # shared, since no two graphs run at once
        for group in optimizer.param_groups:
            group["lr"] = torch.tensor(float(group["lr"]), device=device)
            if "capturable" in group:
                group["capturable"] = True

    def __call__(self, rows: Tensor) -> Tensor:
        """Take the first steps of a shape one by one, record the next, then replay it."""
        with torch.cuda.device(rows.device):
            if rows.shape not in self.recorded:
                self.n_taken[rows.shape] += 1
                if self.n_taken[rows.shape] <= WARM_UP:  # on another stream, as recording does
                    current = torch.cuda.current_stream()
                    self.stream.wait_stream(current)
                    with torch.cuda.stream(self.stream):
                        risk = self.step(rows)
                    current.wait_stream(self.stream)
                    return risk
                graph, graph_rows = torch.cuda.CUDAGraph(), rows.clone()
                with torch.cuda.graph(graph, pool=self.memory, stream=self.stream):
                    risk = self.step(graph_rows)
                self.recorded[rows.shape] = graph, graph_rows, risk
            graph, graph_rows, risk = self.recorded[rows.shape]
            graph_rows.copy_(rows)
            graph.replay()
            return risk
