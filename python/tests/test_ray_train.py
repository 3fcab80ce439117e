"""Ray Train: workers feed from one server or each from its own, every row comes once, and a run continues with another
number of workers."""

from __future__ import annotations

import json
import os
import pathlib
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from dsload import Loader

pytestmark = pytest.mark.server

if sys.platform != "linux":
    pytest.skip("Ray's clusters on one machine need Linux", allow_module_level=True)
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
_HERE = pathlib.Path(__file__).resolve().parent  # where workers find this module, and the package
os.environ["PYTHONPATH"] = os.pathsep.join(
    p for p in (str(_HERE), str(_HERE.parent), os.environ.get("PYTHONPATH")) if p
)
ray = pytest.importorskip("ray", reason="Ray is not installed (pip install 'ray[train]')")
train_torch = pytest.importorskip("ray.train.torch", reason="Ray Train is not installed (pip install 'ray[train]')")


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        object_store_memory=80_000_000,
        configure_logging=False,
        log_to_driver=False,
    )
    yield
    ray.shutdown()


def worker(config: dict[str, Any]) -> None:
    """Notes the rows of each step; after `stop` steps it keeps the loader's state and ends."""
    import torch
    import torch.utils.data
    from ray import train

    rank = train.get_context().get_world_rank()
    with Loader(**config["loader"]) as loader:
        assert (loader.rank, loader.world) == (rank, train.get_context().get_world_size()), "found in the process group"
        if config["state"]:
            loader.load_state_dict(config["state"])
        batches: Any = loader
        if config["prepared"]:
            batches = train_torch.prepare_data_loader(
                torch.utils.data.DataLoader(loader, batch_size=None, num_workers=0)
            )
        seen, state = [], None
        for step, batch in enumerate(batches):
            total = batch["length"].sum().to(torch.int64)
            if config["stop"] or config["loader"]["tail"] != "keep":  # with "keep" a rank may have a step less
                torch.distributed.all_reduce(total)
            seen.append(batch["example"].tolist())
            if step + 1 == config["stop"]:
                state = loader.state_dict()
                break
    pathlib.Path(config["out"], f"{rank}.json").write_text(json.dumps({"seen": seen, "state": state}))


def run(
    out: pathlib.Path, workers: int, stop: int = 0, state: Any = None, prepared: bool = False, **loader: Any
) -> list[dict[str, Any]]:
    out.mkdir()
    config = {
        "out": str(out),
        "stop": stop,
        "state": state,
        "prepared": prepared,
        "loader": {"batch_size": 16, "seed": 4, "tail": "keep", **loader},
    }
    scaling = ray.train.ScalingConfig(num_workers=workers, use_gpu=False, resources_per_worker={"CPU": 1})
    storage = ray.train.RunConfig(storage_path=str(out / "ray"), name="run")
    trainer = train_torch.TorchTrainer(
        worker,
        train_loop_config=config,
        scaling_config=scaling,
        run_config=storage,
        torch_config=train_torch.TorchConfig(backend="gloo"),
    )
    trainer.fit()
    return [json.loads((out / f"{rank}.json").read_text()) for rank in range(workers)]


def rows(results: list[dict[str, Any]]) -> list[int]:
    return sorted(e for r in results for step in r["seen"] for e in step)


def test_workers_share_an_epoch(cluster: None, dataset: str, tmp_path: pathlib.Path) -> None:
    with Loader(dataset) as server:  # one server for all workers
        n = server.num_examples
        assert server._endpoint is not None
        assert rows(run(tmp_path / "one", 2, socket=server._endpoint.path)) == list(range(n))
    assert rows(run(tmp_path / "own", 2, dataset=dataset, prepared=True)) == list(range(n)), "each its own server"


def test_a_run_goes_on_with_another_number_of_workers(cluster: None, dataset: str, tmp_path: pathlib.Path) -> None:
    with Loader(dataset) as loader:
        n = loader.num_examples
    first = run(tmp_path / "first", 2, stop=3, dataset=dataset, balance="tokens")
    assert first[0]["state"] == first[1]["state"]
    rest = run(tmp_path / "rest", 1, state=first[0]["state"], dataset=dataset)
    assert rows(first + rest) == list(range(n))
