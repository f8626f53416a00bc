# The main job on bundled data; each command is one you could type yourself.
set -eu
out=demo-output
rm -rf "$out" && mkdir "$out"
run() { echo; echo "$ condense-once $*"; condense-once "$@"; }

run info cifar10-real-ipc10
run show cifar10-real-ipc10 -o "$out/sheet.png"

# A network a quarter as wide trains in seconds; leave out --net, --test and --compile for the real thing.
net="--net convnet-d3-w32"
run rank cifar10-real-ipc10 $net -o "$out/ranked.safetensors"
run rank cifar10-real-ipc10 --metric random -o "$out/random.safetensors"
for rule in ranked random; do
    run resize "$out/$rule.safetensors" --ipc 1 -o "$out/$rule-ipc1.safetensors"
    run evaluate "$out/$rule-ipc1.safetensors" --test cifar10-sample $net --compile off --json > "$out/$rule-ipc1.json"
done
run show "$out/ranked-ipc1.safetensors" -o "$out/ranked-ipc1.png"

echo
echo "Accuracy of 40 patches out of 400 on 1,000 test images, three trainings each:"
python - "$out" <<'P'
import json, sys
for rule, name in (("ranked", "easy and balanced (YOCO)"), ("random", "random and balanced")):
    text = open(f"{sys.argv[1]}/{rule}-ipc1.json").read()
    result = json.loads(text[text.index("{"):])
    print(f"  {name:26} {result['mean']:.1%} ± {result['std']:.1%}")
P
echo
echo "Everything lies in $out/: open sheet.png and ranked-ipc1.png to see the set and what is kept of it."
echo "Next: condense-once import --help, to bring in a condensed set of your own;"
echo "      condense-once data get cifar10, for the whole test split."
