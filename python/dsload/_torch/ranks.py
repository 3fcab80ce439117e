"""This process's rank: from torch.distributed, the usual environment variables, and DataLoader's workers."""

from __future__ import annotations

import os
import sys
from typing import Optional

_VARIABLES = (
    ("RANK", "WORLD_SIZE"),
    # Not SLURM_NTASKS, which the script of a batch job has too: one process, however many tasks the job may start.
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
)


def rank_and_world(rank: Optional[int], world: Optional[int]) -> tuple[int, int]:
    """The given pair; else torch.distributed's if it is initialised; else the environment's; else (0, 1). Raises
    ValueError for half a pair."""
    if (rank is None) != (world is None):
        raise ValueError("rank and world belong together: give both or neither")
    if rank is not None and world is not None:
        return rank, world
    torch = sys.modules.get("torch")
    if torch is not None and torch.distributed.is_available() and torch.distributed.is_initialized():
        return int(torch.distributed.get_rank()), int(torch.distributed.get_world_size())
    for rank_name, world_name in _VARIABLES:
        r, w = os.environ.get(rank_name, ""), os.environ.get(world_name, "")
        if r.isdigit() and w.isdigit() and int(r) < int(w):
            return int(r), int(w)
    return 0, 1


def worker() -> tuple[int, int]:
    """(number, count) of this DataLoader worker; (0, 1) in any other process."""
    module = sys.modules.get("torch.utils.data")
    info = module.get_worker_info() if module is not None else None
    return (int(info.id), int(info.num_workers)) if info is not None else (0, 1)
