# The main job on bundled data; each command is one you could type yourself.
set -eu
out=demo-output
rm -rf "$out" && mkdir "$out"
run() { echo; echo "$ condense-once $*"; condense-once "$@"; }

run show cifar10-idc-ipc10 -o "$out/sheet.png"

# Order the patches once; from then on any size is a prefix. This set comes ranked already, by the usual network; one
# a fifth as wide shows in seconds how that is done. Leave out --net and --test for the real thing.
net="--net convnet-d3-w24"
run rank cifar10-idc-ipc10 $net -o "$out/ranked.safetensors"
for ipc in 1 2 5; do
    run resize "$out/ranked.safetensors" --ipc $ipc -o "$out/ipc$ipc.safetensors"
done
run show "$out/ipc1.safetensors" -o "$out/ipc1.png"

# Is it better than chance? Two columns of the paper's main table, and two of its figures.
study="$net --test cifar10-sample --protocol quick --repeats 2 --dynamics 1 --store $out/studies.sqlite"
run study table1 --only yoco --only random $study -o "$out/table1.md"
run study fig-easy-hard $study -o "$out/easy-hard.png"
run study fig-distribution $study -o "$out/distribution.png"

echo
echo "Everything lies in $out/: ranked.safetensors can be cut to any size; open ipc1.png to see what is kept of sheet.png,"
echo "and easy-hard.png and distribution.png to see why."
echo "Next, once '. .venv/bin/activate' has brought the command into your shell:"
echo "      condense-once list studies, for the other tables and figures of the paper;"
echo "      condense-once import --help, to bring in a condensed set of your own;"
echo "      condense-once data get cifar10, for the whole test split;"
echo "      condense-once condense cifar10 --method idc --ipc 10 --minutes 60 -o mine.safetensors, then, to condense one."
