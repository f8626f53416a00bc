#!/bin/sh
# Try an installed wheel as a user without a compiler: `sh tools/try_wheel.sh FOLDER`, the folder of python and condense-once.
set -eu
bin=$(cd "$1" && pwd)
work=$(mktemp -d)
mkdir "$work/bin" # a PATH without g++ and clang++
ln -s "$bin/condense-once" "$(command -v cat)" "$(command -v grep)" "$work/bin/"
printf '#!/bin/sh\nexec "%s" "$@"\n' "$bin/python" >"$work/bin/python" # a link would leave its environment
chmod +x "$work/bin/python"
export PATH="$work/bin" CONDENSE_ONCE_CACHE="$work/cache"
unset PYTHONPATH CXX
cd "$work"
condense-once --version
python -c '
import subprocess, sys
code = "import sys, time; start = time.perf_counter(); import condense_once; print(time.perf_counter() - start, *sys.modules)"
times = []
for _ in range(5):  # the best of them: a busy machine takes several times as long now and then
    seconds, *modules = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "torch" not in modules
    times.append(float(seconds))
print(f"import condense_once: {min(times):.3f} s")
assert min(times) < 0.15
'
condense-once resize cifar10-idc-ipc10 --ipc 1 -o one.safetensors
condense-once info one.safetensors
condense-once report cifar10-idc-ipc10 --no-train -o page.html
condense-once evaluate one.safetensors --net convnet-d3-w32 --precision float32 --repeats 1 2>notes.txt
cat notes.txt
grep -qi 'compiler' notes.txt || { echo "evaluate does not say that it is slower without a compiler" >&2; exit 1; }
