# The main job on bundled data; each command is one you could type yourself.
set -eu
out=demo-output
rm -rf "$out" && mkdir "$out"
run() { echo; echo "$ condense-once $*"; condense-once "$@"; }

run info cifar10-real-ipc10
run show cifar10-real-ipc10 -o "$out/sheet.png"

# A network a quarter as wide trains in seconds; leave out --net and --test for the real thing.
net="--net convnet-d3-w32"
run rank cifar10-real-ipc10 $net -o "$out/ranked.safetensors"
run rank cifar10-real-ipc10 --metric random -o "$out/random.safetensors"
for ipc in 1 2 5; do
    for rule in ranked random; do
        small="$out/$rule-ipc$ipc"
        run resize "$out/$rule.safetensors" --ipc $ipc -o "$small.safetensors"
        echo "$ condense-once evaluate $small.safetensors --test cifar10-sample $net --repeats 2"
        condense-once evaluate "$small.safetensors" --test cifar10-sample $net --repeats 2 --json > "$small.json"
    done
done
run show "$out/ranked-ipc1.safetensors" -o "$out/ranked-ipc1.png"

echo
echo "Accuracy on 1,000 test images, two trainings each, of a set of ten images a class cut to fewer:"
python - "$out" <<'P'
import json, sys
results = {
    (rule, ipc): json.load(open(f"{sys.argv[1]}/{rule}-ipc{ipc}.json")) for rule in ("ranked", "random") for ipc in (1, 2, 5)
}
print(f"  {'images a class':26}" + "".join(f"{ipc:>16}" for ipc in (1, 2, 5)))
for rule, name in (("ranked", "easy and balanced (YOCO)"), ("random", "random and balanced")):
    row = [results[rule, ipc] for ipc in (1, 2, 5)]
    print(f"  {name:26}" + "".join(f"{result['mean']:>9.1%} ± {result['std']:.1%}" for result in row))
P
echo
echo "Everything lies in $out/: open sheet.png and ranked-ipc1.png to see the set and what is kept of it."
echo "Next: condense-once import --help, to bring in a condensed set of your own;"
echo "      condense-once data get cifar10, for the whole test split;"
echo "      condense-once plan condense cifar10 --method idc --ipc 10 --minutes 60, to condense one."
