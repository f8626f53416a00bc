"""A device that trains: fetch a subset of a ranked set over HTTP and train a small network on it, with numpy alone.

    python examples/device/train_on_device.py https://example.org/ranked.safetensors --bytes 64KiB --test test.npz

`--test` names an .npz with `x_test` (uint8 [n, ch, h, w] or [n, h, w, ch]) and `y_test`: the device's own labelled images.
Nothing but Python, numpy and `condense_once.device` is imported; see docs/device.md for an installation without torch.
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from condense_once.device import open_set
from condense_once.errors import CondenseOnceError

POOL = 4  # both convolutions are followed by a ReLU and a mean over POOL × POOL


def unfold(x: np.ndarray) -> np.ndarray:
    """The 3 × 3 neighbourhoods of every pixel: [n, ch, h, w] to [n, h, w, 9 ch]."""
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = sliding_window_view(padded, (3, 3), axis=(2, 3))  # [n, ch, h, w, 3, 3]
    return np.ascontiguousarray(windows.transpose(0, 2, 3, 1, 4, 5)).reshape(len(x), *x.shape[2:], -1)


def fold(columns: np.ndarray, channels: int) -> np.ndarray:
    """The adjoint of `unfold`: sum every neighbourhood back onto its pixels."""
    n, h, w, _ = columns.shape
    parts = columns.reshape(n, h, w, channels, 3, 3)
    padded = np.zeros((n, channels, h + 2, w + 2), np.float32)
    for i in range(3):
        for j in range(3):
            padded[:, :, i : i + h, j : j + w] += parts[..., i, j].transpose(0, 3, 1, 2)
    return padded[:, :, 1:-1, 1:-1]


class SmallNet:
    """Two convolutions with ReLU and pooling, and a linear classifier; forward, backward and Adam by hand."""

    def __init__(self, shape: tuple[int, ...], classes: int, width: int, rng: np.random.Generator) -> None:
        ch, h, w = shape
        if h % POOL**2 or w % POOL**2:
            raise SystemExit(f"This network takes images whose sides are multiples of {POOL**2}, not {h} × {w}.")
        features = 2 * width * (h // POOL**2) * (w // POOL**2)
        sizes = [(9 * ch, width), (9 * width, 2 * width), (features, classes)]
        self.weights = [(rng.normal(size=s) * np.sqrt(2 / s[0])).astype(np.float32) for s in sizes]
        self.weights += [np.zeros(s[1], np.float32) for s in sizes]
        self._moments = [(np.zeros_like(w), np.zeros_like(w)) for w in self.weights]
        self._steps = 0

    def forward(self, x: np.ndarray) -> tuple[np.ndarray, list]:
        """Logits, and what `backward` needs."""
        kept = []
        for layer in (0, 1):
            columns = unfold(x)
            active = columns @ self.weights[layer] + self.weights[3 + layer]
            mask = active > 0
            n, h, w, c = active.shape
            pooled = (active * mask).reshape(n, h // POOL, POOL, w // POOL, POOL, c).mean((2, 4))
            kept.append((columns, mask))
            x = pooled.transpose(0, 3, 1, 2)
        flat = x.reshape(len(x), -1)
        return flat @ self.weights[2] + self.weights[5], [*kept, (flat, x.shape)]

    def backward(self, slope: np.ndarray, kept: list) -> list[np.ndarray]:
        """Gradients of all weights, given that of the logits."""
        flat, shape = kept[2]
        found = {2: flat.T @ slope, 5: slope.sum(0)}
        slope = (slope @ self.weights[2].T).reshape(shape)
        for layer in (1, 0):
            columns, mask = kept[layer]
            spread = np.repeat(np.repeat(slope.transpose(0, 2, 3, 1), POOL, 1), POOL, 2) * mask / POOL**2
            inner = spread.reshape(-1, spread.shape[-1])
            found |= {layer: columns.reshape(len(inner), -1).T @ inner, 3 + layer: inner.sum(0)}
            if layer:
                slope = fold(spread @ self.weights[layer].T, columns.shape[-1] // 9)
        return [found[i] for i in range(6)]

    def step(self, x: np.ndarray, labels: np.ndarray, lr: float) -> float:
        """One update by Adam on the cross-entropy; returns the loss."""
        logits, kept = self.forward(x)
        p = np.exp(logits - logits.max(1, keepdims=True))
        p /= p.sum(1, keepdims=True)
        rows = np.arange(len(x))
        loss = float(-np.log(p[rows, labels] + 1e-12).mean())
        p[rows, labels] -= 1
        self._steps += 1
        for weight, (m, v), g in zip(self.weights, self._moments, self.backward(p / len(x), kept), strict=True):
            m += 0.1 * (g - m)
            v += 0.001 * (g * g - v)
            bias = np.sqrt(1 - 0.999**self._steps) / (1 - 0.9**self._steps)
            weight -= lr * bias * m / (np.sqrt(v) + 1e-8)
        return loss

    def accuracy(self, x: np.ndarray, labels: np.ndarray) -> float:
        guesses = [self.forward(x[i : i + 100])[0].argmax(1) for i in range(0, len(x), 100)]
        return float((np.concatenate(guesses) == labels).mean())


def augment(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Flip half of the images, and shift all of a batch by up to an eighth."""
    x = np.where(rng.random(len(x))[:, None, None, None] < 0.5, x[..., ::-1], x)
    most = x.shape[-1] // 8
    return np.roll(x, rng.integers(-most, most + 1, 2), (2, 3))


def peak_memory() -> str:
    """Of this process."""
    try:
        from resource import RUSAGE_SELF, getrusage
    except ImportError:  # Windows
        return "unknown on this system"
    unit = 1 if sys.platform == "darwin" else 1024
    return f"{getrusage(RUSAGE_SELF).ru_maxrss * unit / 2**20:.0f} MiB"


def test_images(path: str, mean: np.ndarray, std: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The device's own images as network inputs."""
    with np.load(path, allow_pickle=False) as arrays:
        x, y = arrays["x_test"], arrays["y_test"].astype(np.int64).ravel()
    if x.shape[1] != len(mean):
        x = x.transpose(0, 3, 1, 2)
    return ((x / np.float32(255) - mean[:, None, None]) / std[:, None, None]).astype(np.float32), y


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("where", help="URL or path of a ranked set")
    parser.add_argument("--ipc", type=int, help="images per class")
    parser.add_argument("--bytes", help="size of the subset, such as 64KiB")
    parser.add_argument("--test", help=".npz with x_test and y_test")
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--width", type=int, default=16, help="channels of the first convolution")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    rng = np.random.default_rng(args.seed)

    start = time.perf_counter()
    budget = {name: getattr(args, name) for name in ("ipc", "bytes") if getattr(args, name) is not None}
    try:
        subset = open_set(args.where).take(**budget)
    except CondenseOnceError as error:
        raise SystemExit(str(error)) from None
    print(f"fetched {len(subset)} patches of {len(subset.classes)} classes in {time.perf_counter() - start:.2f} s")
    for note in subset.notes:
        print(f"note: {note}")

    start, x = time.perf_counter(), subset.inputs
    net = SmallNet(x.shape[1:], len(subset.classes), args.width, rng)
    batch = min(64, len(x))
    for epoch in range(args.epochs):
        lr = 0.003 * (1 + np.cos(np.pi * epoch / args.epochs)) / 2
        order = rng.permutation(len(x))
        losses = [net.step(augment(x[r], rng), subset.labels[r], lr) for r in np.array_split(order, len(x) // batch)]
    if args.epochs:
        print(f"trained {args.epochs} epochs in {time.perf_counter() - start:.1f} s, last loss {np.mean(losses):.3f}")
    if args.test:
        tests, labels = test_images(args.test, subset.mean, subset.std)
        accuracy = net.accuracy(tests, labels)
        print(
            f"test accuracy {100 * accuracy:.1f} % on {len(labels)} images (chance: {100 / len(subset.classes):.1f} %)"
        )
    print(f"peak memory {peak_memory()}")


if __name__ == "__main__":
    main()
