# The main workflow on bundled data; you can type every command yourself.
set -eu
out=demo-output
rm -rf "$out" && mkdir "$out"
run() { echo; echo "$ condense-once $*"; condense-once "$@"; }

run show cifar10-idc-ipc10 -o "$out/sheet.png"

# Rank the patches once; after that, every smaller set is a prefix. The bundled set is already ranked, with the default
# network; one a fifth as wide does it again in seconds. For real use, leave out --net, --precision and --test.
net="--net convnet-d3-w24 --precision float32" # bfloat16 does not pay off for runs this short
run rank cifar10-idc-ipc10 $net -o "$out/ranked.safetensors"
for ipc in 1 2 5; do
    run resize "$out/ranked.safetensors" --ipc $ipc -o "$out/ipc$ipc.safetensors"
done
run show "$out/ipc1.safetensors" -o "$out/ipc1.png"

# Is it better than random selection? Two columns of the paper's main table, and two of its figures.
study="$net --test cifar10-sample --protocol quick --repeats 2 --scoring-runs 1 --store $out/studies.sqlite"
run study table1 --only yoco --only random $study -o "$out/table1.md"
run study fig-easy-hard $study -o "$out/easy-hard.png"
run study fig-distribution --scoring-epochs 100 --lbpe-epochs 0-0 --lbpe-epochs 89-89 $study -o "$out/distribution.png"

# All of it on one page: move the slider to see which patches stay, and what that costs.
run report "$out/ranked.safetensors" --store "$out/studies.sqlite" -o "$out/page.html"

echo
echo "All outputs are in $out/. Open page.html in a browser and move its slider: it shows what every size keeps, and why."
echo "Resize ranked.safetensors to any of them."
echo "Next, after '. .venv/bin/activate':"
echo "  condense-once list studies           the paper's other tables and figures"
echo "  condense-once import --help          import a condensed set of your own"
echo "  condense-once data get cifar10       the full test split, and images to condense:"
echo "  condense-once condense cifar10 --ipc 10 --minutes 30 -o mine.safetensors"
