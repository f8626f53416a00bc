"""Federated averaging with Flower: `python -m examples.federated.app --clients 4 --rounds 3`.

Every client takes its own share of one ranked file and trains on it; the server averages the weights and tests them. Flower's
simulation engine runs the clients on this machine. Install it with `pip install 'flwr[simulation]'`, in an environment of its
own: Flower needs an older typer than our command line, so install condense-once there with `pip install --no-deps .`, beside
torch.
"""

from __future__ import annotations

import argparse

import torch
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.simulation import run_simulation

from condense_once import open_source
from examples.federated.client_data import accuracy, fetch_share, new_network, train_locally

SET = "cifar10-idc-ipc10"


def client_app(where: str, epochs: int) -> ClientApp:
    """Clients that train on what they can hold of the file at `where`, a path or a URL."""
    app = ClientApp()

    @app.train()  # type: ignore[untyped-decorator]
    def train(message: Message, context: Context) -> Message:
        torch.set_num_threads(1)
        client = int(context.node_config["partition-id"])
        share, net = fetch_share(where, client), new_network()
        net.load_state_dict(message.content["arrays"].to_torch_state_dict())
        loss = train_locally(net, share, epochs=epochs, seed=client)
        metrics = MetricRecord({"loss": loss, "num-examples": len(share)})
        return Message(RecordDict({"arrays": ArrayRecord(net.state_dict()), "metrics": metrics}), reply_to=message)

    return app


def server_app(rounds: int, test_images: int, found: dict[int, float]) -> ServerApp:
    """A server that averages, weighted by patches, and notes the accuracy after every round in `found`."""
    app = ServerApp()
    sample = open_source("cifar10-sample")
    mean, std = (torch.tensor(values)[:, None, None] for values in (sample.mean, sample.std))
    images = (torch.from_numpy(sample.test.take(slice(test_images))).float() / 255 - mean) / std
    labels = torch.tensor(sample.test.labels[:test_images])

    def test(number: int, arrays: ArrayRecord) -> MetricRecord:
        found[number] = accuracy(arrays.to_torch_state_dict(), images, labels)
        return MetricRecord({"accuracy": found[number]})

    @app.main()  # type: ignore[untyped-decorator]
    def main(grid: Grid, context: Context) -> None:
        strategy = FedAvg(fraction_evaluate=0.0)
        strategy.start(grid, ArrayRecord(new_network().state_dict()), num_rounds=rounds, evaluate_fn=test)

    return app


def simulate(
    where: str = SET, *, clients: int = 4, rounds: int = 3, epochs: int = 5, test_images: int = 500
) -> dict[int, float]:
    """The accuracy in % after each round; round 0 is before training."""
    found: dict[int, float] = {}
    resources = {"client_resources": {"num_cpus": 1, "num_gpus": 0.0}}
    run_simulation(server_app(rounds, test_images, found), client_app(where, epochs), clients, backend_config=resources)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--where", default=SET, help="path, URL or name of a ranked set")
    for name, value in {"clients": 4, "rounds": 3, "epochs": 5}.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    for number, percent in simulate(**vars(parser.parse_args())).items():
        print(f"round {number}: {percent:.1f} %")


if __name__ == "__main__":
    main()
