"""Accuracy over bytes per class: a set stored within given bytes, with the codec `layered` and without loss.

    python benchmarks/rate.py LOG [--sets cifar10-idc-ipc10 …] [--bytes 1024 3072 6144 12288 30720] [--codecs layered raw]
        [--net convnet-d3] [--protocol quick] [--repeats 3]

Bytes are those of the real file divided by the number of classes; every byte of it counts. Results are appended to LOG, and a
second call resumes there. Runs on the CPU, on the test split that `evaluate` takes by default.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from log import Log

import condense_once
from condense_once.condensed.codec.within import best_within
from condense_once.condensed.file import from_bytes, to_bytes
from condense_once.condensed.set import CondensedSet
from condense_once.errors import BadOption


def stored(data: CondensedSet, codec: str, limit: int) -> bytes:
    """The content of the file that this codec spends at most `limit` bytes on."""
    if codec == "layered":
        return best_within(data, limit)
    return to_bytes(condense_once.resize(data, bytes=limit))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("log", type=Path)
    parser.add_argument("--sets", nargs="+", default=["cifar10-idc-ipc10"])
    parser.add_argument("--bytes", nargs="+", type=int, default=[1024, 3072, 6144, 12288, 30720])
    parser.add_argument("--codecs", nargs="+", choices=("layered", "raw"), default=["layered", "raw"])
    parser.add_argument("--net", default=None)
    parser.add_argument("--protocol", default="quick")
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    log = Log(args.log)
    for name in args.sets:
        data = condense_once.load(name)
        for per_class in args.bytes:
            for codec in args.codecs:
                key = {"set": name, "bytes": per_class, "codec": codec, "net": args.net, "protocol": args.protocol}
                if log.find(**key, repeats=args.repeats):
                    continue
                try:
                    content = stored(data, codec, per_class * len(data.classes))
                except BadOption as error:  # not even one patch of every class fits
                    print(f"{name}, {codec}, {per_class} bytes per class: {error}", flush=True)
                    continue
                read = from_bytes(content, name)
                result = condense_once.evaluate(read, protocol=args.protocol, net=args.net, repeats=args.repeats)
                log.add(
                    **key,
                    repeats=args.repeats,
                    file=len(content),
                    patches=len(read),
                    coded=read.provenance.get("coded"),
                    mean=100 * result.mean,
                    std=100 * result.std,
                    accuracies=[100 * run.accuracy for run in result.runs],
                )
    print("| set | bytes per class | codec | file | patches | accuracy |\n|---|---|---|---|---|---|")
    for entry in log.entries:
        facts = (entry["set"], f"{entry['bytes']:,}", entry["codec"], f"{entry['file']:,}", entry["patches"])
        print(f"| {' | '.join(map(str, facts))} | {entry['mean']:.1f} ± {entry['std']:.1f} |")


if __name__ == "__main__":
    main()
