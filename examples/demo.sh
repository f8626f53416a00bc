# The main job on bundled data; each command is one you could type yourself.
set -eu
out=demo-output
rm -rf "$out" && mkdir "$out"
run() { echo; echo "$ condense-once $*"; condense-once "$@"; }

run info cifar10-real-ipc10
run verify cifar10-real-ipc10
run show cifar10-real-ipc10 -o "$out/sheet.png"
run export cifar10-real-ipc10 -o "$out/patches.npz"
run import "$out/patches.npz" -o "$out/again.safetensors"
run data info cifar10-sample
# A network a quarter as wide trains in seconds; leave out --net and --test for the real thing.
run evaluate cifar10-real-ipc10 --test cifar10-sample --net convnet-d3-w32 --repeats 2 --compile off

echo
echo "Everything lies in $out/: open sheet.png to see the set."
echo "Next: condense-once import --help, to bring in a condensed set of your own;"
echo "      condense-once data get cifar10, for the whole test split."
