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
run list sets
run data info cifar10-sample

echo
echo "Everything lies in $out/: open sheet.png to see the set."
echo "Next: condense-once import --help, to bring in a condensed set of your own."
